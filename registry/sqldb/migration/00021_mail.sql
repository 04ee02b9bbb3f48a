-- +goose Up
-- By which way a message goes: callback, or mail- and what the mail tells.
ALTER TABLE delivery ADD COLUMN kind TEXT NOT NULL DEFAULT 'callback';
-- What could not be delivered, for the operators' digest.
CREATE INDEX delivery_untold ON delivery (tried_at) WHERE sent_at IS NULL AND tries > 0;

-- +goose Down
DROP INDEX delivery_untold;
ALTER TABLE delivery DROP COLUMN kind;
