package main

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

	"github.com/redis/go-redis/v9"
)

// serverTime is the CPU time of the servers behind a fleet since their start.
type serverTime struct {
	postgres, redis time.Duration
}

// serverTimes reads the CPU time of -postgres and -redis. PostgreSQL's is 0 if it runs on another
// machine.
func (b *bench) serverTimes(ctx context.Context) (t serverTime, err error) {
	if t.postgres, err = postgresTime(ctx, b.postgres); err != nil {
		return t, fmt.Errorf("read PostgreSQL's CPU time: %w", err)
	}
	if t.redis, err = redisTime(ctx, b.redis); err != nil {
		return t, fmt.Errorf("read Redis's CPU time: %w", err)
	}
	return t, nil
}

// postgresTime adds up the server's first process, its living children, and those that have ended.
func postgresTime(ctx context.Context, address string) (total time.Duration, err error) {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var backend int
	if err := db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	own, ok := readStat(backend)
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
		switch p, ok := readStat(pid); {
		case !ok: // it has ended
		case pid == own.parent:
			total += p.cpu + p.ended
		case p.parent == own.parent:
			total += p.cpu
		}
	}
	return total, nil
}

// redisTime reads what the server says of itself.
func redisTime(ctx context.Context, address string) (total time.Duration, err error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return 0, errors.New("-redis is not an address")
	}
	c := redis.NewClient(o)
	defer func() { err = errors.Join(err, c.Close()) }()
	text, err := c.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}

// stat is what /proc/PID/stat says of a process.
type stat struct {
	name   string
	parent int
	cpu    time.Duration // user and system
	ended  time.Duration // of its children that have ended
}

// readStat reads a process's stat. It returns false if there is none.
func readStat(pid int) (s stat, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, false
	}
	return parseStat(string(raw))
}

// parseStat reads "PID (NAME) STATE PARENT ...". The name may contain spaces and brackets.
func parseStat(text string) (s stat, ok bool) {
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
	s.cpu, s.ended = time.Duration(user+system)*tick, time.Duration(endedUser+endedSystem)*tick
	return s, err == nil
}
