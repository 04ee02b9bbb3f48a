-- +goose Up
-- One collection's objects, the newest first.
CREATE INDEX object_collection_list ON object (tenant, collection, created_at, id) WHERE head > 0;

-- The text of objects, which a list of them is searched by, in a trigram index.
-- +dialect sqlite
CREATE VIRTUAL TABLE object_text USING fts5(id, title, creator, tokenize='trigram', columnsize=0);

INSERT INTO object_text (id, title, creator) SELECT id, title, creator FROM object WHERE head > 0;

-- +goose StatementBegin
CREATE TRIGGER object_text_new AFTER UPDATE OF head ON object WHEN OLD.head = 0 AND NEW.head > 0 BEGIN
  INSERT INTO object_text (id, title, creator) VALUES (NEW.id, NEW.title, NEW.creator);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER object_text_became AFTER UPDATE OF title, creator ON object
WHEN OLD.head > 0 AND (OLD.title <> NEW.title OR OLD.creator <> NEW.creator)
BEGIN
  UPDATE object_text SET title = NEW.title, creator = NEW.creator WHERE rowid IN (
    SELECT rowid FROM object_text WHERE object_text MATCH 'id : "' || replace(NEW.id, '"', '""') || '"' AND id = NEW.id);
END;
-- +goose StatementEnd

-- +dialect all
-- +goose Down
-- +dialect sqlite
DROP TRIGGER object_text_new;
DROP TRIGGER object_text_became;
DROP TABLE object_text;

-- +dialect all
DROP INDEX object_collection_list;
