-- +goose Up
-- What uploads count for their quotas: their collection, and the bytes that an ended one holds in staging. It only adds: uploads from before, and those
-- of programs of the version before, hold nothing here and count for nobody.
ALTER TABLE incoming ADD COLUMN collection TEXT NOT NULL DEFAULT '';
ALTER TABLE upload ADD COLUMN collection TEXT NOT NULL DEFAULT '';
ALTER TABLE upload ADD COLUMN held BIGINT NOT NULL DEFAULT 0;
CREATE INDEX upload_held ON upload (created_by, collection, held, retired_at) WHERE held > 0;
CREATE INDEX upload_here ON upload (created_at, id) WHERE retired_at IS NULL;

-- +goose Down
DROP INDEX upload_here;
DROP INDEX upload_held;
ALTER TABLE upload DROP COLUMN held;
ALTER TABLE upload DROP COLUMN collection;
ALTER TABLE incoming DROP COLUMN collection;
