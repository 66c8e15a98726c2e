import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade():
    op.add_column("notes", sa.Column("stars", sa.Integer, nullable=False, server_default="1"))
