-- +goose Up
-- The stages that a worker's token is good for, with commas between them, and the token by which an attempt was claimed. It only adds: programs of the version
-- before go on working; the tokens that they make are good for every stage, and the attempts that they start may be settled by every worker's token.
ALTER TABLE token ADD COLUMN stages TEXT NOT NULL DEFAULT '';
ALTER TABLE attempt ADD COLUMN token TEXT; -- NULL: an older program's; '': a process that has the Registry in itself

-- +goose Down
ALTER TABLE attempt DROP COLUMN token;
ALTER TABLE token DROP COLUMN stages;
