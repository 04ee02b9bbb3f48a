-- +goose Up
-- Deletions of objects: asked for by one person, approved by another, carried out by an item. The row of the approved one stays as the
-- object's tombstone.
CREATE TABLE deletion (
  id          TEXT PRIMARY KEY,
  object_id   TEXT NOT NULL,
  status      TEXT NOT NULL,              -- asked, withdrawn, approved, deleting, deleted
  reason      TEXT NOT NULL,
  asked_by    TEXT NOT NULL,
  asked_at    BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,            -- when asking ends, if nobody has approved
  closed_by   TEXT NOT NULL DEFAULT '',   -- who approved or withdrew it
  closed_at   BIGINT NOT NULL DEFAULT 0,
  item_id     TEXT NOT NULL DEFAULT '',   -- that carries it out
  deleted_at  BIGINT NOT NULL DEFAULT 0,
  head        BIGINT NOT NULL DEFAULT 0,  -- the last version there was
  inventory   TEXT NOT NULL DEFAULT '',   -- the digest of its inventory, ALG:HEX
  files       TEXT NOT NULL DEFAULT ''    -- the digest of the list of its files, ALG:HEX
);
CREATE INDEX deletion_of ON deletion (object_id, asked_at);
CREATE INDEX deletion_by ON deletion (item_id) WHERE item_id <> '';

-- What readers of an object are told: '' is preserved; deleting, deleted.
ALTER TABLE object ADD COLUMN gone TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE object DROP COLUMN gone;
DROP TABLE deletion;
