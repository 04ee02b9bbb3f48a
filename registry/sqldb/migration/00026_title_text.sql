-- +goose Up
-- The titles of the items that were there before, and the text index with titles. It is a migration of its own, since programs read
-- on meanwhile, and claim what has no title; nobody can pass the locks of the one before.
-- +dialect postgres
-- What is open last, so that it is locked for less time.
UPDATE work_item SET title = spec_title(d.spec) FROM work_detail d
  WHERE d.item_id = work_item.id AND work_item.action IN ('batch', 'ingest') AND work_item.title = '' AND work_item.finished_at IS NOT NULL
  AND strpos(d.spec, '"title":') > 0 AND strpos(d.spec, '"title_shared":true') = 0;

UPDATE work_item SET title = spec_title(d.spec) FROM work_detail d
  WHERE d.item_id = work_item.id AND work_item.action IN ('batch', 'ingest') AND work_item.title = ''
  AND strpos(d.spec, '"title":') > 0 AND strpos(d.spec, '"title_shared":true') = 0;

-- +goose StatementBegin
DO $$
DECLARE home TEXT;
BEGIN
  SELECT n.nspname INTO home FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX item_text_words ON item_text USING gin (name %I.gin_trgm_ops, title %I.gin_trgm_ops, note %I.gin_trgm_ops, places)', home, home, home);
END $$;
-- +goose StatementEnd

-- +dialect sqlite
DROP TRIGGER item_text_new;
DROP TRIGGER item_text_changed;
DROP TRIGGER item_text_became;
DROP TRIGGER item_text_gone;
DROP TABLE item_text;
DROP VIEW item_words;

UPDATE work_item SET title = COALESCE(json_extract(d.spec, '$.title'), '') FROM work_detail d
  WHERE d.item_id = work_item.id AND work_item.action IN ('batch', 'ingest') AND work_item.title = ''
  AND instr(d.spec, '"title":') > 0 AND instr(d.spec, '"title_shared":true') = 0;

CREATE VIEW item_words AS SELECT i.seq, i.name, i.title, i.note, c.token AS collection,
  CASE WHEN i.note <> '' AND i.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') THEN substr(i.status, 1, 3) ELSE '' END AS status
  FROM work_item i JOIN item_text_collection c ON c.name = i.collection;

CREATE VIRTUAL TABLE item_text USING fts5(name, title, note, collection, status, content='item_words', content_rowid='seq', tokenize='trigram', columnsize=0);

INSERT INTO item_text (item_text) VALUES ('rebuild');

-- +goose StatementBegin
CREATE TRIGGER item_text_new AFTER INSERT ON work_item BEGIN
  INSERT INTO item_text_collection (name) SELECT NEW.collection
    WHERE NOT EXISTS (SELECT 1 FROM item_text_collection WHERE name = NEW.collection);
  INSERT INTO item_text (rowid, name, title, note, collection, status)
    SELECT seq, name, title, note, collection, status FROM item_words WHERE seq = NEW.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_changed BEFORE UPDATE OF name, title, note, status ON work_item
WHEN OLD.name <> NEW.name OR OLD.title <> NEW.title OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
  OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted'))
BEGIN
  INSERT INTO item_text (item_text, rowid, name, title, note, collection, status)
    SELECT 'delete', seq, name, title, note, collection, status FROM item_words WHERE seq = OLD.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_became AFTER UPDATE OF name, title, note, status ON work_item
WHEN OLD.name <> NEW.name OR OLD.title <> NEW.title OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
  OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted'))
BEGIN
  INSERT INTO item_text (rowid, name, title, note, collection, status)
    SELECT seq, name, title, note, collection, status FROM item_words WHERE seq = NEW.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_gone BEFORE DELETE ON work_item BEGIN
  INSERT INTO item_text (item_text, rowid, name, title, note, collection, status)
    SELECT 'delete', seq, name, title, note, collection, status FROM item_words WHERE seq = OLD.seq;
END;
-- +goose StatementEnd

-- +dialect all
-- +goose Down
-- +dialect postgres
DROP INDEX item_text_words;

-- +dialect sqlite
DROP TRIGGER item_text_new;
DROP TRIGGER item_text_changed;
DROP TRIGGER item_text_became;
DROP TRIGGER item_text_gone;
DROP TABLE item_text;
DROP VIEW item_words;

CREATE VIEW item_words AS SELECT i.seq, i.name, i.note, c.token AS collection,
  CASE WHEN i.note <> '' AND i.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') THEN substr(i.status, 1, 3) ELSE '' END AS status
  FROM work_item i JOIN item_text_collection c ON c.name = i.collection;

CREATE VIRTUAL TABLE item_text USING fts5(name, note, collection, status, content='item_words', content_rowid='seq', tokenize='trigram', columnsize=0);

INSERT INTO item_text (item_text) VALUES ('rebuild');

-- +goose StatementBegin
CREATE TRIGGER item_text_new AFTER INSERT ON work_item BEGIN
  INSERT INTO item_text_collection (name) SELECT NEW.collection
    WHERE NOT EXISTS (SELECT 1 FROM item_text_collection WHERE name = NEW.collection);
  INSERT INTO item_text (rowid, name, note, collection, status)
    SELECT seq, name, note, collection, status FROM item_words WHERE seq = NEW.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_changed BEFORE UPDATE OF name, note, status ON work_item
WHEN OLD.name <> NEW.name OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
  OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted'))
BEGIN
  INSERT INTO item_text (item_text, rowid, name, note, collection, status)
    SELECT 'delete', seq, name, note, collection, status FROM item_words WHERE seq = OLD.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_became AFTER UPDATE OF name, note, status ON work_item
WHEN OLD.name <> NEW.name OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
  OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted'))
BEGIN
  INSERT INTO item_text (rowid, name, note, collection, status)
    SELECT seq, name, note, collection, status FROM item_words WHERE seq = NEW.seq;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER item_text_gone BEFORE DELETE ON work_item BEGIN
  INSERT INTO item_text (item_text, rowid, name, note, collection, status)
    SELECT 'delete', seq, name, note, collection, status FROM item_words WHERE seq = OLD.seq;
END;
-- +goose StatementEnd
