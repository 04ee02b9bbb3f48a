-- +goose Up
-- The files as they lie in storage: a row each, however many names a file has in how many versions.
CREATE TABLE stored_file (
  object_id    TEXT NOT NULL,
  content_path BLOB NOT NULL,
  version      BIGINT NOT NULL,          -- that it came with
  size_bytes   BIGINT NOT NULL,
  digests      TEXT NOT NULL,
  checked_at   BIGINT NOT NULL,          -- when it was last found right in every storage
  damaged_at   BIGINT,                   -- since when it is known not to be
  item_id      TEXT NOT NULL DEFAULT '', -- its check that waits, runs or failed
  PRIMARY KEY (object_id, content_path)
);
CREATE INDEX stored_file_due ON stored_file (checked_at, object_id, content_path) WHERE item_id = '';
CREATE INDEX stored_file_object ON stored_file (object_id, checked_at);
CREATE INDEX stored_file_item ON stored_file (item_id) WHERE item_id <> '';
CREATE INDEX stored_file_damaged ON stored_file (object_id) WHERE damaged_at IS NOT NULL;
-- When somebody asked that all files of an object be checked: those that were not since then are due.
ALTER TABLE object ADD COLUMN check_asked_at BIGINT;
CREATE INDEX object_check_asked ON object (check_asked_at, id) WHERE check_asked_at IS NOT NULL;
-- What was stored before was last read when its version was recorded.
INSERT INTO stored_file (object_id, content_path, version, size_bytes, digests, checked_at)
  SELECT f.object_id, f.content_path, MIN(f.version), MAX(f.size_bytes), MAX(f.digests), MIN(COALESCE(v.recorded_at, v.created_at))
  FROM file f JOIN object_version v ON v.object_id = f.object_id AND v.version = f.version
  WHERE f.deleted = 0 GROUP BY f.object_id, f.content_path;
INSERT INTO stored_file (object_id, content_path, version, size_bytes, digests, checked_at)
  SELECT object_id, CAST('v' || version || '/inventory.json' AS BLOB ), version, -1, '{}', recorded_at
  FROM object_version WHERE status = 'recorded';

-- +goose Down
DROP INDEX object_check_asked;
ALTER TABLE object DROP COLUMN check_asked_at;
DROP TABLE stored_file;
