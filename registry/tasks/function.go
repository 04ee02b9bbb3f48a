package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/outside"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
	"github.com/holdfast/holdfast/schema"
)

const selectFunction = `SELECT name, title, args_schema, result_schema, policy, seen_at FROM function `

const selectFunctionNames = `SELECT name FROM function ORDER BY name`

func scanFunction(row sqldb.Scanner) (f registry.Function, err error) {
	var args, result, policy string
	var seen int64
	if err := row.Scan(&f.Name, &f.Title, &args, &result, &policy, &seen); err != nil {
		return f, err
	}
	if err := json.Unmarshal([]byte(policy), &f.Policy); err != nil {
		return f, fmt.Errorf("decode the policy of function %s: %w", f.Name, err)
	}
	if args != "" {
		f.Args = json.RawMessage(args)
	}
	if result != "" {
		f.Result = json.RawMessage(result)
	}
	f.SeenAt = sqldb.FromMicros(seen)
	return f, nil
}

// Announce implements registry.Serving.
func (s *Tasks) Announce(ctx context.Context, functions []registry.Function) error {
	if err := bounds.Check(functions); err != nil {
		return fmt.Errorf("announce functions: %w", err)
	}
	for _, f := range functions {
		if err := checkFunction(f); err != nil {
			return fmt.Errorf("announce function %.100q: %w", f.Name, err)
		}
	}
	err := s.work.Write(ctx, func(t *work.Tx) error {
		for _, f := range functions {
			policy, err := json.Marshal(f.Policy)
			if err != nil {
				return fmt.Errorf("encode the policy of function %s: %w", f.Name, err)
			}
			err = t.Do(`INSERT INTO function (name, title, args_schema, result_schema, policy, seen_at) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (name) DO UPDATE SET title = $2, args_schema = $3, result_schema = $4, policy = $5, seen_at = $6`,
				f.Name, sqldb.Clean(f.Title), string(f.Args), string(f.Result), string(policy), t.Now)
			if err == nil {
				err = t.AnnounceLimit(f.Stage(), f.Policy.AtOnce)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("announce %d functions: %w", len(functions), err)
	}
	return nil
}

// Functions implements registry.Tasking.
func (s *Tasks) Functions(ctx context.Context) ([]registry.Function, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectFunction+`ORDER BY name`), "list functions", scanFunction)
}

// FitsProfile returns the faults of a profile's outside steps, each an *outside.Fault.
func FitsProfile(t *work.Tx, p registry.Profile) error {
	if len(p.Steps) == 0 {
		return nil
	}
	known, err := sqldb.Collect(t.Ask(selectFunction+`ORDER BY name`), "list functions", scanFunction)
	if err != nil {
		return err
	}
	var faults []error
	for _, f := range outside.Faults(p, known) {
		faults = append(faults, f)
	}
	return errors.Join(faults...)
}

// Function implements registry.Tasking.
func (s *Tasks) Function(ctx context.Context, name string) (registry.Function, error) {
	found, err := sqldb.Collect(s.db.Read.Ask(ctx, selectFunction+`WHERE name = $1`, sqldb.Clean(name)), "look up function "+name, scanFunction)
	if err != nil {
		return registry.Function{}, err
	}
	if len(found) == 0 {
		known, err := s.db.Column(ctx, selectFunctionNames)
		if err != nil {
			return registry.Function{}, fmt.Errorf("list functions: %w", err)
		}
		return registry.Function{}, &registry.UnknownFunctionError{Function: name, Known: known}
	}
	return found[0], nil
}

func checkFunction(f registry.Function) error {
	if err := registry.CheckFunctionName(f.Name); err != nil {
		return err
	}
	for _, text := range []json.RawMessage{f.Args, f.Result} {
		if _, err := schema.Read(text); err != nil {
			return fmt.Errorf("%w: its schema is not a JSON Schema: %w", registry.ErrInvalid, err)
		}
	}
	return nil
}

// judge returns the function of a task whose arguments fit.
func judge(t *work.Tx, n registry.NewTask) (registry.Function, error) {
	f, err := scanFunction(t.Row(selectFunction+`WHERE name = $1`, n.Function))
	if errors.Is(err, sql.ErrNoRows) {
		known, err := t.Strings(selectFunctionNames)
		if err != nil {
			return f, fmt.Errorf("list functions: %w", err)
		}
		return f, &registry.UnknownFunctionError{Function: n.Function, Known: known}
	} else if err != nil {
		return f, fmt.Errorf("look up function %s: %w", n.Function, err)
	}
	args, err := schema.Read(f.Args)
	if err != nil {
		return f, fmt.Errorf("read the schema of function %s: %w", n.Function, err)
	}
	if err := args.Fits(orNull(n.Args)); err != nil {
		return f, &registry.ArgumentError{Function: n.Function, Problem: err.Error()}
	}
	return f, nil
}
