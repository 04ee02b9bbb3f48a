package wire

import (
	"encoding/json"

	"github.com/holdfast/holdfast/registry"
)

// ScheduleRequest is what a schedule says.
type ScheduleRequest struct {
	Cron          string           `json:"cron" maxLength:"200" doc:"Five fields as in crontab(5), or @hourly, @daily, @weekly, @monthly, @yearly" example:"30 2 * * *"`
	Zone          string           `json:"zone,omitempty" maxLength:"100" doc:"IANA name of the expression's time zone; UTC when absent" example:"Europe/Berlin"`
	Task          ScheduleTask     `json:"task"`
	JitterSeconds int64            `json:"jitter_seconds,omitempty" doc:"Delays the start of each item by a random time below this; at most 86400"`
	Overlap       registry.Overlap `json:"overlap,omitempty" doc:"While an item of an earlier firing has not ended: skip (the default) or allow"`
	CatchUp       registry.CatchUp `json:"catch_up,omitempty" doc:"After a downtime: once (the default) fires the last missed time, skip none, all each, 100 at most"`
	Version       int64            `json:"version,omitempty" doc:"When a schedule is edited: the version that the editor saw; any when absent"`
}

// ScheduleTask is the task that a schedule submits.
type ScheduleTask struct {
	Function   string          `json:"function" doc:"Name of the function, as /functions lists it" example:"harvest"`
	Args       json.RawMessage `json:"args,omitempty" doc:"Any JSON value that fits the function's schema, 64 KiB at most; null when absent"`
	Title      string          `json:"title,omitempty" doc:"For people; the function's title when empty"`
	Subject    string          `json:"subject,omitempty" doc:"What it is about: an object's ARK, an address"`
	Collection string          `json:"collection,omitempty" doc:"Mnemonic of the collection whose people may see the tasks; when empty, only those who see all collections"`
	Priority   *int            `json:"priority,omitempty" doc:"Lower first; 0 when absent"`
}

// NewScheduleRequest creates a schedule.
type NewScheduleRequest struct {
	Name string `json:"name" doc:"1 to 64 letters, digits, dots, hyphens and underscores" example:"nightly-harvest"`
	ScheduleRequest
}

// Spec returns what the request says.
func (r ScheduleRequest) Spec() registry.ScheduleSpec {
	task := registry.ScheduledTask(r.Task)
	return registry.ScheduleSpec{Cron: r.Cron, Zone: r.Zone, Task: &task, JitterSeconds: r.JitterSeconds, Overlap: r.Overlap, CatchUp: r.CatchUp}
}

// ScheduleRequestOf returns the request that changes nothing of a schedule.
func ScheduleRequestOf(s registry.Schedule) ScheduleRequest {
	r := ScheduleRequest{Cron: s.Cron, Zone: s.Zone, JitterSeconds: s.JitterSeconds, Overlap: s.Overlap, CatchUp: s.CatchUp, Version: s.Version}
	if s.Task != nil {
		r.Task = ScheduleTask(*s.Task)
	}
	return r
}
