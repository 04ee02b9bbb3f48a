-- +goose Up
-- Lists of items that people saved under a name.
CREATE TABLE saved_view (
  id         TEXT PRIMARY KEY,
  owner      TEXT NOT NULL,
  name       TEXT NOT NULL,
  shared     BIGINT NOT NULL, -- 1: everyone who sees all collections sees it
  query      TEXT NOT NULL,
  columns    TEXT NOT NULL,   -- separated by commas; '': the usual ones
  oldest     BIGINT NOT NULL, -- 1: the oldest items come first
  version    BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  UNIQUE (owner, name)
);
CREATE INDEX saved_view_shared ON saved_view (name) WHERE shared = 1;

-- +goose Down
DROP TABLE saved_view;
