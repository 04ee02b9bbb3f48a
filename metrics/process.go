package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What happened in the process.
var (
	buildInfo = gauge("build_info", "1, with the versions of the program and of Go.", "version", "goversion")

	StepBytes = counter("step_bytes_total", "Bytes that steps read, wrote or sent, as their progress counted them; counted when a step is done.", "stage")
	StepFiles = counter("step_files_total", "Files that steps worked on, as their progress counted them; counted when a step is done.", "stage")

	Relay = counter("relay_messages_total", "Messages of the relay to workers: `offered` (found due), then `published`, or `refused` (not published, and due again).", "outcome").
		from0("offered", "published", "refused")
	FirstWorkers = counter("first_workers_total", "First workers of stages that the Registry asked Amazon ECS to start (`HOLDFAST_ECS_CLUSTER`): `done`, or `failed`, and then the alarm at CloudWatch starts one.", "outcome").from0("done", "failed")
	Swept        = counter("sweep_attempts_total", "Attempts that the sweep ended because their lease had run out.").from0()

	Request = timer("http_request_duration_seconds", "Requests of the API, of workers and of pages, by the pattern of their route and the class of their status (`2xx`; `507`, refused for want of room, and `503`, refused while a payload is checked or submissions are not accepted, are classes of their own). Requests that wait for events, such as streams, last as long as they wait. `none`: no route has the address.", brief, "route", "method", "status")

	DatabaseErrors = counter("database_errors_total", "Statements and transactions that failed because the database did not answer: of `read`ers, of the `write`r.", "connection").
			from0("read", "write")

	BackupMade   = gauge("backup_timestamp_seconds", "When the newest verified backup in the place for backups was made, in seconds since 1970; 0: there is none. Only of a process that makes backups by itself (`HOLDFAST_BACKUP_TO`).")
	BackupPeriod = gauge("backup_period_seconds", "How old the newest backup may get before another one is made (`HOLDFAST_BACKUP_EVERY`).")

	Published     = counter("nsq_published_messages_total", "Messages given to nsqd: `done`, or `failed` if no nsqd took them.", "outcome").from0("done", "failed")
	Received      = counter("nsq_received_messages_total", "Messages received from nsqd, with repeats.").from0()
	Redelivered   = counter("nsq_redelivered_messages_total", "Received messages that nsqd had delivered before.").from0()
	NSQLost       = counter("nsq_connection_losses_total", "Connections to nsqd that were lost or could not be made, by `producer` and `consumer`.", "role").from0("producer", "consumer")
	RedisRequest  = timer("redis_request_duration_seconds", "Requests to Redis by command; `pipeline`: several commands together. `failed`: Redis did not answer, or refused.", brief, "command", "outcome")
	redisConns    = gauge("redis_connections", "Connections to Redis: `total`, `idle`.", "state")
	redisTimeouts = counter("redis_pool_timeouts_total", "Requests that got no connection to Redis in time.").from0()

	Spans = counter("trace_spans_total", "Spans of traces: `sent`, `failed` (the receiver did not take them) or `dropped` (too many waited).", "outcome").from0("sent", "failed", "dropped")

	StorageRequest = timer("storage_request_duration_seconds", "Requests to staging and storages, by `store`: a `bucket` (with their repeats, by operation of S3, until the answer begins) or a `folder` (`Open`, `Write`, `Commit` and so on; a `Publish` commits several files). `refused`: the answer was no, such as for an object that is not there. `failed`: there was no answer, or the disk failed or was full.", quick, "store", "operation", "outcome")
	StorageBytes   = counter("storage_bytes_total", "Bytes of objects on their way to or from a `bucket` or `folder`: `written` and `read`.", "store", "direction")
)

// quick has the upper bounds of buckets for requests that a disk may answer: 62 µs to 65 s.
var quick = prometheus.ExponentialBuckets(0.0000625, 4, 11)

// brief has the upper bounds of buckets for requests: 4 ms to 65 s.
var brief = []float64{0.004, 0.016, 0.064, 0.256, 1.024, 4.096, 16.384, 65.536}

// Build tells the versions of the program and of Go. Repeats change nothing.
func Build(version string) { buildInfo.Set(1, version, runtime.Version()) }

// RedisPool counts the connections to Redis when metrics are read. The last call holds.
func RedisPool(count func() (total, idle, timeouts uint32)) {
	redisPool.Lock()
	defer redisPool.Unlock()
	redisPool.count, redisPool.told = count, 0
}

var redisPool struct {
	sync.Mutex
	count func() (total, idle, timeouts uint32)
	told  uint32 // timeouts that are counted
}

// countRedis sets the gauges of the pool, and counts its timeouts.
func countRedis() {
	redisPool.Lock()
	defer redisPool.Unlock()
	if redisPool.count == nil {
		return
	}
	total, idle, timeouts := redisPool.count()
	redisConns.Set(float64(total), "total")
	redisConns.Set(float64(idle), "idle")
	redisTimeouts.Add(float64(timeouts - redisPool.told))
	redisPool.told = timeouts
}

// Requested tells that a request was answered with a status. wait: it was refused until something else has
// happened, which is no failure.
func Requested(begun time.Time, route, method string, status int, wait bool) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // anybody may invent methods
	}
	class := strconv.Itoa(status/100) + "xx"
	if wait {
		class = strconv.Itoa(status) // what waits is no failure of the API
	}
	Request.Since(begun, route, method, class)
}
