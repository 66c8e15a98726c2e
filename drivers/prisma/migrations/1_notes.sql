CREATE TYPE "mood" AS ENUM ('fresh', 'updated');

CREATE TABLE "notes" (
    "id" SERIAL NOT NULL,
    "owner" TEXT NOT NULL,
    "mood" "mood" NOT NULL DEFAULT 'fresh',
    "more" JSONB NOT NULL,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "notes_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "counter" (
    "id" INTEGER NOT NULL,
    "value" INTEGER NOT NULL,

    CONSTRAINT "counter_pkey" PRIMARY KEY ("id")
);

CREATE INDEX "notes_owner_idx" ON "notes"("owner");
