-- +goose Up
-- By which token a worker was announced: "" by none, by a process that has the Registry in itself. It only adds: programs of the version before
-- say nothing, and whoever comes next may have the worker's id.
ALTER TABLE worker ADD COLUMN token TEXT;

-- +goose Down
ALTER TABLE worker DROP COLUMN token;
