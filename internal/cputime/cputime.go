// Package cputime reads how much processor time other processes have used.
package cputime

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Process is what /proc/PID/stat says of a process.
type Process struct {
	name   string
	parent int
	CPU    time.Duration // user and system
	ended  time.Duration // of its children that have ended
}

// Of reads a process's times. It returns false if there is no such process, or no /proc.
func Of(pid int) (p Process, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	return parse(string(raw))
}

// parse reads "PID (NAME) STATE PARENT ...". The name may contain spaces and brackets.
func parse(text string) (s Process, ok bool) {
	const tick = time.Second / 100 // on all architectures of Linux that Go runs on
	end := strings.LastIndex(text, ") ")
	_, name, found := strings.Cut(text[:max(end, 0)], "(")
	if !found {
		return s, false
	}
	s.name = name
	fields := strings.Fields(text[end+2:])
	const needed = 15 // the last one is field 17 of the line: system time of ended children
	if len(fields) < needed {
		return s, false
	}
	var user, system, endedUser, endedSystem int64
	_, err := fmt.Sscan(strings.Join(append(fields[1:2:2], fields[11:needed]...), " "), &s.parent, &user, &system, &endedUser, &endedSystem)
	s.CPU, s.ended = time.Duration(user+system)*tick, time.Duration(endedUser+endedSystem)*tick
	return s, err == nil
}

// Postgres returns the CPU time of a PostgreSQL server since its start: of its first process, its living
// children, and those that have ended. It is 0 if the server runs on another machine.
func Postgres(ctx context.Context, address string) (total time.Duration, err error) {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var backend int
	if err := db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	own, ok := Of(backend)
	if !ok || own.name != "postgres" {
		return 0, nil
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, folder := range all {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return 0, err
		}
		switch p, ok := Of(pid); {
		case !ok: // it has ended
		case pid == own.parent:
			total += p.CPU + p.ended
		case p.parent == own.parent:
			total += p.CPU
		}
	}
	return total, nil
}
