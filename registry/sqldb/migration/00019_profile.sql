-- +goose Up
-- Every profile that a collection has had. Those that are there become version 1; who made them stands in the events only.
ALTER TABLE collection ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
CREATE TABLE collection_version (
  mnemonic   TEXT   NOT NULL,
  version    BIGINT NOT NULL, -- from 1 on
  profile    TEXT   NOT NULL,
  actor      TEXT   NOT NULL, -- '' where it is not known
  created_at BIGINT NOT NULL,
  PRIMARY KEY (mnemonic, version)
);
INSERT INTO collection_version (mnemonic, version, profile, actor, created_at) SELECT mnemonic, 1, profile, '', created_at FROM collection;

-- A program of the schema before, which may run beside this one for a while, saves profiles and knows nothing of versions. They
-- become versions all the same, or a batch would be told to have a version that is another profile.
-- +dialect sqlite
-- +goose StatementBegin
CREATE TRIGGER collection_created AFTER INSERT ON collection
BEGIN
  INSERT INTO collection_version (mnemonic, version, profile, actor, created_at)
    VALUES (NEW.mnemonic, NEW.version, NEW.profile, '', NEW.created_at);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER collection_changed AFTER UPDATE OF profile ON collection WHEN NEW.version = OLD.version AND NEW.profile <> OLD.profile
BEGIN
  UPDATE collection SET version = OLD.version + 1 WHERE mnemonic = NEW.mnemonic;
  INSERT INTO collection_version (mnemonic, version, profile, actor, created_at)
    VALUES (NEW.mnemonic, OLD.version + 1, NEW.profile, '', CAST(unixepoch('subsec') * 1000000 AS INTEGER));
END;
-- +goose StatementEnd
-- +dialect postgres
-- +goose StatementBegin
CREATE FUNCTION collection_versioned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    NEW.version := OLD.version + 1;
  END IF;
  INSERT INTO collection_version (mnemonic, version, profile, actor, created_at)
    VALUES (NEW.mnemonic, NEW.version, NEW.profile, '', CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT));
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER collection_created AFTER INSERT ON collection FOR EACH ROW EXECUTE FUNCTION collection_versioned();
CREATE TRIGGER collection_changed BEFORE UPDATE OF profile ON collection FOR EACH ROW
  WHEN (NEW.version = OLD.version AND NEW.profile <> OLD.profile) EXECUTE FUNCTION collection_versioned();
-- +dialect all

-- +goose Down
DROP TRIGGER collection_changed
-- +dialect postgres
  ON collection
-- +dialect all
;
DROP TRIGGER collection_created
-- +dialect postgres
  ON collection
-- +dialect all
;
-- +dialect postgres
DROP FUNCTION collection_versioned();
-- +dialect all
DROP TABLE collection_version;
ALTER TABLE collection DROP COLUMN version;
