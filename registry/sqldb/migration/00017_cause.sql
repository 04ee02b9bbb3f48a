-- +goose Up
-- What a failed item is grouped by: the fingerprint of its cause, and what of the cause its note does not say. '' where it has
-- not failed, or the cause was not looked at yet: of what failed before, and of what a program of the schema before fails. The
-- sweep does that soon.
ALTER TABLE work_item ADD COLUMN cause TEXT NOT NULL DEFAULT '';
ALTER TABLE work_item ADD COLUMN cause_code TEXT NOT NULL DEFAULT '';
ALTER TABLE work_item ADD COLUMN cause_host TEXT NOT NULL DEFAULT '';
-- The failed items of everything and of each batch by their causes. Status stands in both, although it is always the same here:
-- SQLite counts the columns by which it may choose an index. What stands behind spares the row where groups are added up.
CREATE INDEX work_item_cause ON work_item (status, cause, created_at, seq, tenant, collection, stage, error_class, action, created_by, finished_at)
  WHERE status = 'failed';
CREATE INDEX work_item_batch_cause ON work_item (parent_id, status, cause, row_no, seq, tenant, collection, finished_at)
  WHERE status = 'failed';

-- +dialect postgres
-- A program of the schema before, which runs beside this one for a while, sends failed items on and knows nothing of causes: if
-- it fails one again, that must not count as what it was.
-- +goose StatementBegin
CREATE FUNCTION work_item_cause_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.cause := '';
  NEW.cause_code := '';
  NEW.cause_host := '';
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER work_item_cause_ends BEFORE UPDATE OF status ON work_item FOR EACH ROW
  WHEN (OLD.status = 'failed' AND NEW.status <> 'failed') EXECUTE FUNCTION work_item_cause_ends();
-- +dialect all

-- +goose Down
-- +dialect postgres
DROP TRIGGER work_item_cause_ends ON work_item;
DROP FUNCTION work_item_cause_ends();
-- +dialect all
DROP INDEX work_item_batch_cause;
DROP INDEX work_item_cause;
ALTER TABLE work_item DROP COLUMN cause_host;
ALTER TABLE work_item DROP COLUMN cause_code;
ALTER TABLE work_item DROP COLUMN cause;
