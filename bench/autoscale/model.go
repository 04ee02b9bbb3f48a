package autoscale

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Options are what a run depends on. Policy, Times and Scenario must be set.
type Options struct {
	Platform Platform // "": ECS
	Policy   Policy
	Times    Times
	Scenario Scenario
	Seed     uint64
	Rows     int // jobs of each deposit; 0: 1
	// Optional are the optional stages that all jobs pass.
	Optional []registry.Stage
	Slots    int // of a worker in each stage; 0: the default
	Most     int // workers of each stage; 0: 20
	// StartLeast and StartMost bound the time from the request for a worker to its first claim; 0: by
	// the platform.
	StartLeast, StartMost time.Duration
	Refused               bool // ECS starts no worker because the Registry asks
	// Processors of a worker that fetches or writes content, and of the others; 0: as in
	// ecs/services.yaml.
	LargeCores, SmallCores float64
}

// Assumed times to start a worker: Fargate's provisioning and the pull of an image of 25 MiB; a pod
// on a node that is there. Holdfast itself is ready in 0.1 s.
func startTimes(p Platform) (least, most float64) {
	if p == Kubernetes {
		return 5, 20
	}
	return 25, 50
}

// spareShare is which part of its slots a worker has more, for other collections, see workers.Spare.
const spareShare = 0.5

// event is something that happens at a time. Events of one time happen in the order in which they
// were planned.
type event struct {
	at  float64
	seq int
	do  func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(e any)   { *a = append(*a, e.(event)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = event{}
	*a = (*a)[:last]
	return e
}

// model is one run. All times are seconds since its beginning.
type model struct {
	o      Options
	now    float64
	seq    int
	events agenda
	random *rand.Rand
	stages []*station
	// published are called with the figures that CloudWatch gets.
	published []func(registry.QueueStatus)
	came      int // jobs
	open      int // jobs that came and are not done
	// deposits came and have no report yet.
	deposits int
	slower   [lanes]float64 // factor on the time that sources take, by lane
	figures  Figures
	waits    []float64
	firsts   []float64 // those of first deposits
	rests    bool      // there are no workers
}

// lanes are the collections: the usual one, and one whose source may be slow.
const lanes = 2

// deposit is a batch on its way: it is expanded into jobs, and reported when all of them are done.
type deposit struct {
	lane  int
	came  float64
	first bool // the first one after the stages were idle
	open  int  // jobs
}

// job is an item on its way through the stages: a job, or in the stages of batches the deposit itself.
type job struct {
	*deposit
	ready float64 // since when it could start in its stage
	left  float64 // of an interrupted step; 0: the step begins anew
}

// station is a stage with its workers.
type station struct {
	m         *model
	i         int
	stage     registry.Stage
	ended     func(*job) // what follows a step
	draw      sampler
	share     float64 // of a step's time that uses a processor
	mean      float64
	cores     float64
	slots     int
	spare     int
	fetches   bool
	queue     [lanes][]*job
	turn      int
	workers   []*worker
	runs      [lanes]int
	ghosts    int // dead workers that still count as live
	lost      int // items of dead workers, whose leases did not end yet
	desired   int
	steps     float64 // as registry/throughput keeps them
	seconds   float64
	doneSteps float64
	doneTime  float64
	scale     scaler
	lastDir   int
	lastDirAt float64
}

// scaler decides how many workers a station wants.
type scaler interface {
	// start plans the looks of the scaler.
	start(m *model, s *station)
	// protects reports whether a worker may not be ended because there are too many.
	protects(w *worker) bool
}

// worker is a process. Its steps share its processors.
type worker struct {
	s       *station
	live    bool
	gone    bool
	began   float64 // when it was asked for
	liveAt  float64
	steps   []*step
	v       float64 // progress of each step that ran since the beginning
	last    float64 // when v was brought up to date
	plan    int     // the number of the valid plan for its next end of a step
	idle    float64 // since when nothing runs
	busy    float64 // since when it is protected
	idleSum float64
}

type step struct {
	job   *job
	end   float64 // in terms of v
	whole float64
	began float64
}

func newModel(o Options) *model {
	o.Platform = cmp.Or(o.Platform, ECS)
	o.Slots, o.Most = cmp.Or(o.Slots, registry.DefaultSlots), cmp.Or(o.Most, 20)
	o.Rows = max(1, o.Rows)
	o.LargeCores, o.SmallCores = cmp.Or(o.LargeCores, 1), cmp.Or(o.SmallCores, 0.25)
	m := &model{o: o, random: rand.New(rand.NewPCG(o.Seed, 1)), slower: [lanes]float64{1, 1}} //nolint:gosec // a run can be repeated
	ofJob := len(route(registry.Batch, o.Optional))                                           // the index of the first stage of jobs
	for i, stage := range stages(o.Optional) {
		t, _ := o.Times.Of(stage)
		if i < ofJob {
			t = o.Times.ofDeposit(stage, o.Rows)
		}
		step, _ := registry.StepOf(stage)
		s := &station{m: m, i: i, stage: stage, draw: newSampler(t), share: t.Share(), mean: t.Mean(), cores: o.SmallCores, slots: o.Slots, fetches: step.Fetches != registry.NoSource}
		switch stage {
		case registry.Download, registry.Process:
			s.cores = o.LargeCores
		case registry.Scan, registry.Replicate:
			s.cores = 2 * o.SmallCores
		}
		if s.fetches {
			s.spare = int(spareShare * float64(o.Slots))
		}
		s.steps, s.seconds = meanOver, meanOver*s.mean
		if o.Platform == Kubernetes {
			s.scale = &keda{}
		} else {
			s.scale = &tracking{}
		}
		m.stages = append(m.stages, s)
	}
	for i, s := range m.stages {
		switch i {
		case 0:
			s.ended = func(j *job) { m.expanded(j, m.stages[ofJob]) }
		case ofJob - 1:
			s.ended = m.reported
		case len(m.stages) - 1:
			s.ended = func(j *job) { m.done(j, m.stages[ofJob-1]) }
		default:
			s.ended = m.stages[i+1].enter
		}
	}
	return m
}

// at plans something.
func (m *model) at(t float64, do func()) {
	m.seq++
	heap.Push(&m.events, event{max(t, m.now), m.seq, do})
}

// each does something again and again.
func (m *model) each(first, every float64, do func()) {
	m.at(first, func() {
		do()
		m.each(m.now+every, every, do)
	})
}

// run runs until the scenario ends.
func (m *model) run() {
	for _, s := range m.stages {
		s.scale.start(m, s)
		m.each(reconcile/2, reconcile, s.reconcile)
	}
	every := m.o.Policy.Publish.Seconds()
	m.each(m.random.Float64()*every, every, m.publish) // the Registry began at any time of an alarm's period
	m.each(noteEvery, noteEvery, m.note)
	m.each(0, sampleEvery, m.sample)
	m.o.Scenario.plan(m)
	for len(m.events) > 0 {
		e := heap.Pop(&m.events).(event)
		if e.at > m.o.Scenario.length() {
			break
		}
		m.now = e.at
		e.do()
	}
}

// note brings the mean times up to date.
func (m *model) note() {
	for _, s := range m.stages {
		s.steps += s.doneSteps
		s.seconds += s.doneTime
		s.doneSteps, s.doneTime = 0, 0
		if s.steps > meanOver {
			s.steps, s.seconds = meanOver, s.seconds*meanOver/s.steps
		}
	}
}

// queueStatus is what the Registry would say.
func (m *model) queueStatus() (q registry.QueueStatus) {
	for _, s := range m.stages {
		live := s.live()
		q.Stages = append(q.Stages, registry.StageQueue{
			Stage: s.stage, Ready: int64(s.ready()), Running: int64(s.running() + s.lost), Workers: live + s.ghosts, Capacity: (live + s.ghosts) * s.slots,
			ServiceSeconds: s.seconds / s.steps,
		})
	}
	return q
}

// publish counts, has ECS start first workers, and sends the figures to CloudWatch.
func (m *model) publish() {
	q := m.queueStatus()
	send := func() {
		for _, take := range m.published {
			take(q)
		}
	}
	var first []*station
	if m.o.Platform == ECS && m.o.Policy.Asks && !m.o.Refused {
		for _, s := range m.stages {
			if of, needed := m.figure(q, s); needed && of.Workers == 0 {
				first = append(first, s)
			}
		}
	}
	if len(first) == 0 {
		send()
		return
	}
	m.at(m.now+askTime, func() {
		for _, s := range first {
			if q.Stages[s.i].Workers = 1; s.desired == 0 {
				s.want(1)
			}
		}
		send()
	})
}

func (s *station) ready() int   { return len(s.queue[0]) + len(s.queue[1]) }
func (s *station) running() int { return s.runs[0] + s.runs[1] }

func (s *station) live() (n int) {
	for _, w := range s.workers {
		if w.live {
			n++
		}
	}
	return n
}

// arrive adds a deposit.
func (m *model) arrive(lane int) {
	d := &deposit{lane: lane, came: m.now, first: m.deposits == 0, open: m.o.Rows}
	m.deposits++
	m.open += m.o.Rows
	m.came += m.o.Rows
	if d.first && m.o.Policy.AtOnce {
		m.at(m.now+publishTime, m.publish)
	}
	m.stages[0].enter(&job{deposit: d})
}

// expanded makes the jobs of a deposit.
func (m *model) expanded(j *job, first *station) {
	for range j.open {
		first.enter(&job{deposit: j.deposit})
	}
}

// done is the end of a job. The last one of a deposit lets its report begin.
func (m *model) done(j *job, report *station) {
	m.open--
	if j.open--; j.open == 0 {
		report.enter(&job{deposit: j.deposit})
	}
}

// reported is the end of a deposit.
func (m *model) reported(j *job) {
	m.deposits--
	if j.first {
		m.figures.FirstDone = max(m.figures.FirstDone, m.now-j.came)
	}
}

// enter makes a job ready.
func (s *station) enter(j *job) {
	j.ready = s.m.now
	s.queue[j.lane] = append(s.queue[j.lane], j)
	s.dispatch()
}

// dispatch starts what there are slots for. The lanes take turns; each may take the slots of all
// workers, and both together the spare ones, too.
func (s *station) dispatch() {
	for s.ready() > 0 {
		live := s.live()
		if s.running() >= live*(s.slots+s.spare) {
			return
		}
		lane := -1
		for k := range lanes {
			l := (s.turn + k) % lanes
			if len(s.queue[l]) > 0 && s.runs[l] < live*s.slots {
				lane = l
				break
			}
		}
		if lane < 0 {
			return
		}
		var w *worker
		for _, c := range s.workers {
			if c.live && len(c.steps) < s.slots+s.spare && (w == nil || len(c.steps) < len(w.steps)) {
				w = c
			}
		}
		if w == nil {
			return
		}
		s.turn = (lane + 1) % lanes
		j := s.queue[lane][0]
		s.queue[lane][0] = nil
		s.queue[lane] = s.queue[lane][1:]
		s.begin(w, j)
	}
}

func (s *station) begin(w *worker, j *job) {
	m := s.m
	m.waited(s, j)
	w.progress()
	whole := j.left
	if whole == 0 {
		whole = s.draw.draw(m.random)
		if s.fetches {
			whole *= m.slower[j.lane]
		}
	}
	j.left = 0
	if len(w.steps) == 0 {
		if m.now-w.idle >= protectIdle || w.busy < 0 {
			w.busy = m.now
		}
		w.idleSum += m.now - w.idle
	}
	w.steps = append(w.steps, &step{job: j, end: w.v + whole, whole: whole, began: m.now})
	s.runs[j.lane]++
	w.replan()
}

// rate is how fast the steps of a worker go: slower when they need more processors than it has.
func (w *worker) rate() float64 {
	need := 0.0
	for _, st := range w.steps {
		share := w.s.share
		if w.s.fetches {
			share /= w.s.m.slower[st.job.lane]
		}
		need += share
	}
	if need <= w.s.cores {
		return 1
	}
	return w.s.cores / need
}

// progress brings v up to date.
func (w *worker) progress() {
	if len(w.steps) > 0 {
		w.v += (w.s.m.now - w.last) * w.rate()
	}
	w.last = w.s.m.now
}

// replan plans the next end of a step.
func (w *worker) replan() {
	w.plan++
	if len(w.steps) == 0 {
		return
	}
	first := slices.MinFunc(w.steps, func(a, b *step) int { return cmp.Compare(a.end, b.end) })
	plan := w.plan
	w.s.m.at(w.s.m.now+(first.end-w.v)/w.rate(), func() {
		if w.plan == plan && !w.gone {
			w.ends(first)
		}
	})
}

func (w *worker) ends(st *step) {
	s, m := w.s, w.s.m
	w.progress()
	w.remove(st)
	s.doneSteps++
	s.doneTime += m.now - st.began
	w.replan()
	s.ended(st.job)
	s.dispatch()
}

func (w *worker) remove(st *step) {
	i := slices.Index(w.steps, st)
	w.steps = slices.Delete(w.steps, i, i+1)
	w.s.runs[st.job.lane]--
	if len(w.steps) == 0 {
		w.idle = w.s.m.now
	}
}

// want sets how many workers the station is to have.
func (s *station) want(n int) {
	n = max(0, min(n, s.m.o.Most))
	if n == s.desired {
		return
	}
	direction := 1
	if n < s.desired {
		direction = -1
	}
	if direction > 0 && s.lastDir < 0 && s.m.now-s.lastDirAt < flapWithin {
		s.m.figures.Flaps++
	}
	s.lastDir, s.lastDirAt = direction, s.m.now
	s.desired = n
	s.reconcile()
}

// reconcile starts and ends workers.
func (s *station) reconcile() {
	for len(s.workers) < s.desired {
		s.hire()
	}
	for len(s.workers) > s.desired {
		var out *worker
		for _, w := range s.workers { // those that did not start yet, then idle ones, then the newest
			if s.scale.protects(w) {
				continue
			}
			if out == nil || w.rank() < out.rank() || w.rank() == out.rank() && w.began > out.began {
				out = w
			}
		}
		if out == nil {
			return
		}
		out.stop()
	}
}

func (w *worker) rank() int {
	switch {
	case !w.live:
		return 0
	case len(w.steps) == 0:
		return 1
	}
	return 2
}

func (s *station) hire() {
	m := s.m
	least, most := startTimes(m.o.Platform)
	if m.o.StartMost > 0 {
		least, most = m.o.StartLeast.Seconds(), m.o.StartMost.Seconds()
	}
	w := &worker{s: s, began: m.now, busy: -1}
	s.workers = append(s.workers, w)
	m.at(m.now+least+m.random.Float64()*(most-least), func() {
		if w.gone {
			return
		}
		w.live, w.liveAt, w.last, w.idle = true, m.now, m.now, m.now
		s.dispatch()
	})
}

// leave takes the worker out of the fleet and returns its jobs, with what is left of their steps.
func (w *worker) leave() (jobs []*job) {
	s, m := w.s, w.s.m
	w.progress()
	for len(w.steps) > 0 {
		st := w.steps[0]
		st.job.left = max(0.001, st.end-w.v)
		jobs = append(jobs, st.job)
		w.remove(st)
	}
	if w.live {
		w.idleSum += m.now - w.idle
	}
	w.gone, w.live = true, false
	m.figures.WorkerHours += (m.now - w.began) / 3600
	m.figures.IdleHours += w.idleSum / 3600
	s.workers = slices.DeleteFunc(s.workers, func(o *worker) bool { return o == w })
	return jobs
}

// stop is a SIGTERM: the worker saves its progress and releases its items.
func (w *worker) stop() {
	s, m := w.s, w.s.m
	jobs := w.leave()
	m.figures.Interrupted += len(jobs)
	s.lost += len(jobs)
	m.at(m.now+stopTime, func() {
		s.lost -= len(jobs)
		for _, j := range jobs {
			s.enter(j)
		}
	})
}

// kill is the death of a machine: leases end, and steps begin anew.
func (w *worker) kill() {
	s, m := w.s, w.s.m
	wasLive := w.live
	jobs := w.leave()
	m.figures.Killed += len(jobs)
	s.lost += len(jobs)
	if wasLive {
		s.ghosts++
		m.at(m.now+aliveFor, func() { s.ghosts-- })
	}
	m.at(m.now+lease+m.random.Float64()*sweepEvery, func() {
		s.lost -= len(jobs)
		for _, j := range jobs {
			j.left = 0
			s.enter(j)
		}
	})
}

func ceil(x float64) int { return int(math.Ceil(x - 1e-9)) }
