-- +goose Up
-- What a file is in a registry of formats, as JSON; '' when nobody asked, or nothing fitted.
ALTER TABLE file ADD COLUMN format TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE file DROP COLUMN format;
