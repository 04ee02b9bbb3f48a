-- +goose Up
-- Who is told of the events of the feed, and how far they have been told. It only adds, so that programs of the version before
-- go on working; they do not forward.
CREATE TABLE subscription (
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL UNIQUE,
  target        TEXT NOT NULL,
  filter        TEXT NOT NULL,   -- JSON
  told_up_to    BIGINT NOT NULL, -- the cursor: of the last event that was acknowledged, or not taken
  told          BIGINT NOT NULL, -- how many were acknowledged
  told_at       BIGINT,
  turn          BIGINT NOT NULL, -- fences whoever forwards
  rewinds       BIGINT NOT NULL,
  owner         TEXT NOT NULL,   -- the process that forwards; '': none
  lease_until   BIGINT NOT NULL,
  paused_at     BIGINT,
  paused_by     TEXT NOT NULL,
  paused_why    TEXT NOT NULL,
  failing_since BIGINT,
  tries         BIGINT NOT NULL,
  error         TEXT NOT NULL,
  next_try      BIGINT,
  created_by    TEXT NOT NULL,
  created_at    BIGINT NOT NULL
);

-- What this Registry is called by those who hear of several. A copy of the database is the same one.
-- +dialect sqlite
INSERT INTO setting (name, value, reason, actor, at)
  SELECT 'source', 'urn:uuid:' || lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
    || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))), '', 'registry', 0;
-- +dialect postgres
INSERT INTO setting (name, value, reason, actor, at) SELECT 'source', 'urn:uuid:' || CAST(gen_random_uuid() AS TEXT), '', 'registry', 0;
-- +dialect all

-- +goose Down
DELETE FROM setting WHERE name = 'source';
DROP TABLE subscription;
