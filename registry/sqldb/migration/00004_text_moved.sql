-- +goose Up
-- What only programs of the schema before read: they find the same text without it, more slowly.
-- +dialect postgres
DROP INDEX work_item_text;
-- +dialect all

-- +goose Down
-- +dialect postgres
-- +goose StatementBegin
DO $$
DECLARE home TEXT;
BEGIN
  SELECT n.nspname INTO home FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX work_item_text ON work_item USING gin (name %I.gin_trgm_ops, note %I.gin_trgm_ops)', home, home);
END $$;
-- +goose StatementEnd
-- +dialect all
