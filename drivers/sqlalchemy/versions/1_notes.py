import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "1"
down_revision = None


def upgrade():
    op.create_table(
        "notes",
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False, index=True),
        sa.Column("mood", sa.Enum("new", "updated", name="mood"), nullable=False),
        sa.Column("more", JSONB, nullable=False),
    )
    op.create_table("counter", sa.Column("value", sa.BigInteger, primary_key=True))
    op.execute("INSERT INTO counter VALUES (0)")
