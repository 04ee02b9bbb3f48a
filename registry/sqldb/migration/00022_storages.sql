-- +goose Up
-- Storages of which something is known but their name: what acts on storages did. One that is not here is
-- in use, and not off-site.
CREATE TABLE storage (
  name      TEXT PRIMARY KEY,
  state     TEXT NOT NULL,    -- in-use, filling, retiring, retired
  offsite   BIGINT NOT NULL,
  -- Where the profiles named it before it was to be retired: JSON, places by collection.
  places    TEXT NOT NULL,
  reason    TEXT NOT NULL,
  actor     TEXT NOT NULL,
  since     BIGINT NOT NULL,
  -- What was missing when it began to be filled: for an estimate of when it ends.
  objects   BIGINT NOT NULL,
  bytes     BIGINT NOT NULL,
  -- Of a retired storage: its rows of replica are gone up to this object; all are if forgotten is 1.
  forgot    TEXT NOT NULL,
  forgotten BIGINT NOT NULL
);

-- Objects that an item copies to where they belong: until it has ended, or a person has looked at it.
CREATE TABLE copying (
  object_id TEXT PRIMARY KEY,
  item_id   TEXT NOT NULL
);
CREATE INDEX copying_item ON copying (item_id);

-- +goose Down
DROP TABLE copying;
DROP TABLE storage;
