-- +goose Up
-- The text of items in a table of its own on both databases, with what narrows a search beside it, so that the text index
-- itself intersects them: a word may be common in the Registry and absent where it is looked for. It only adds (R27); on
-- SQLite, whose one process is this one, the index of before goes at once.
-- What an item is searched by changes with its name and note, and with its status only where there is a note and
-- the item settles or is sent back: a claim of an item pays nothing for it.

-- +dialect sqlite
DROP TRIGGER item_text_gone;
DROP TRIGGER item_text_changed;
DROP TRIGGER item_text_new;
DROP TABLE item_text;
-- A trigram is all that the index finds at once, so collections are known to it by three letters. Beyond 46,656 collections
-- some share theirs, which costs time and nothing else.
CREATE TABLE item_text_collection (
  no    INTEGER PRIMARY KEY,
  name  TEXT NOT NULL UNIQUE,
  token TEXT NOT NULL GENERATED ALWAYS AS (
    substr('0123456789abcdefghijklmnopqrstuvwxyz', no / 1296 % 36 + 1, 1) ||
    substr('0123456789abcdefghijklmnopqrstuvwxyz', no / 36 % 36 + 1, 1) ||
    substr('0123456789abcdefghijklmnopqrstuvwxyz', no % 36 + 1, 1)) STORED
);
INSERT INTO item_text_collection (name) SELECT DISTINCT collection FROM work_item;
CREATE VIEW item_words AS SELECT i.seq, i.name, i.note, c.token AS collection,
  CASE WHEN i.note <> '' AND i.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') THEN substr(i.status, 1, 3) ELSE '' END AS status
  FROM work_item i JOIN item_text_collection c ON c.name = i.collection;
CREATE VIRTUAL TABLE item_text USING fts5(name, note, collection, status, content='item_words', content_rowid='seq', tokenize='trigram', columnsize=0);
INSERT INTO item_text (rowid, name, note, collection, status) SELECT seq, name, note, collection, status FROM item_words;
-- +goose StatementBegin
CREATE TRIGGER item_text_new AFTER INSERT ON work_item BEGIN
  INSERT INTO item_text_collection (name) SELECT NEW.collection
    WHERE NOT EXISTS (SELECT 1 FROM item_text_collection WHERE name = NEW.collection);
  INSERT INTO item_text (rowid, name, note, collection, status)
    SELECT seq, name, note, collection, status FROM item_words WHERE seq = NEW.seq;
END;
-- +goose StatementEnd
-- The index has to be told what it had.
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

-- +dialect postgres
-- Every change of a row of work_item is a new row version, which all indexes on it pay for: the one of text is the dearest.
CREATE TABLE item_text (
  seq    BIGINT PRIMARY KEY,
  name   TEXT NOT NULL,
  note   TEXT NOT NULL,
  places TEXT[] NOT NULL -- c:COLLECTION, and s:STATUS of a settled item with a note
);
-- +goose StatementBegin
CREATE FUNCTION item_text_places(collection TEXT, status TEXT, note TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN note <> '' AND status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted')
    THEN ARRAY['c:' || collection, 's:' || status] ELSE ARRAY['c:' || collection] END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION item_text_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM item_text WHERE seq = OLD.seq;
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE item_text SET name = NEW.name, note = NEW.note, places = item_text_places(NEW.collection, NEW.status, NEW.note)
      WHERE seq = NEW.seq;
  ELSE
    INSERT INTO item_text (seq, name, note, places)
      VALUES (NEW.seq, NEW.name, NEW.note, item_text_places(NEW.collection, NEW.status, NEW.note));
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER item_text_new AFTER INSERT ON work_item FOR EACH ROW EXECUTE FUNCTION item_text_follows();
CREATE TRIGGER item_text_gone AFTER DELETE ON work_item FOR EACH ROW EXECUTE FUNCTION item_text_follows();
CREATE TRIGGER item_text_became AFTER UPDATE OF name, note, status ON work_item FOR EACH ROW
  WHEN (OLD.name <> NEW.name OR OLD.note <> NEW.note OR NEW.note <> '' AND OLD.status <> NEW.status AND (
    OLD.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted') OR NEW.status IN ('completed', 'failed', 'cancelled', 'aborted', 'deleted')))
  EXECUTE FUNCTION item_text_follows();
INSERT INTO item_text (seq, name, note, places) SELECT seq, name, note, item_text_places(collection, status, note) FROM work_item;
-- +goose StatementBegin
DO $$
DECLARE home TEXT;
BEGIN
  SELECT n.nspname INTO home FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX item_text_words ON item_text USING gin (name %I.gin_trgm_ops, note %I.gin_trgm_ops, places)', home, home);
END $$;
-- +goose StatementEnd
ANALYZE item_text;
-- +dialect all

-- +goose Down
-- +dialect sqlite
DROP TRIGGER item_text_gone;
DROP TRIGGER item_text_became;
DROP TRIGGER item_text_changed;
DROP TRIGGER item_text_new;
DROP TABLE item_text;
DROP VIEW item_words;
DROP TABLE item_text_collection;
CREATE VIRTUAL TABLE item_text USING fts5(name, note, content='work_item', content_rowid='seq', tokenize='trigram', columnsize=0);
INSERT INTO item_text (rowid, name, note) SELECT seq, name, note FROM work_item;
-- +goose StatementBegin
CREATE TRIGGER item_text_new AFTER INSERT ON work_item BEGIN
  INSERT INTO item_text (rowid, name, note) VALUES (NEW.seq, NEW.name, NEW.note);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER item_text_changed AFTER UPDATE OF name, note ON work_item
WHEN OLD.name <> NEW.name OR OLD.note <> NEW.note BEGIN
  INSERT INTO item_text (item_text, rowid, name, note) VALUES ('delete', OLD.seq, OLD.name, OLD.note);
  INSERT INTO item_text (rowid, name, note) VALUES (NEW.seq, NEW.name, NEW.note);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER item_text_gone AFTER DELETE ON work_item BEGIN
  INSERT INTO item_text (item_text, rowid, name, note) VALUES ('delete', OLD.seq, OLD.name, OLD.note);
END;
-- +goose StatementEnd
-- +dialect postgres
DROP TRIGGER item_text_new ON work_item;
DROP TRIGGER item_text_gone ON work_item;
DROP TRIGGER item_text_became ON work_item;
DROP FUNCTION item_text_follows();
DROP FUNCTION item_text_places(TEXT, TEXT, TEXT);
DROP TABLE item_text;
-- +dialect all
