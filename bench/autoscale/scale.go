package autoscale

import (
	"math"

	"github.com/holdfast/holdfast/registry"
)

// figure is the state of a stage in that of all.
func (m *model) figure(q registry.QueueStatus, s *station) (of registry.StageQueue, needed bool) {
	of = q.Stages[s.i]
	if m.o.Policy.Together {
		return of, q.Needed(s.stage)
	}
	return of, of.Startable() > 0
}

// tracking scales as Application Auto Scaling does: by target tracking, and by an alarm that starts a
// first worker.
type tracking struct {
	period   float64 // the largest figure of this minute
	seen     bool
	points   []float64
	base     int     // workers before the scale-out that is under way
	outUntil float64 // until when it is
	inAfter  float64
	wakeFrom float64
	needed   bool // the largest figures of this period of the alarm
	live     int
}

func (t *tracking) start(m *model, s *station) {
	m.published = append(m.published, func(q registry.QueueStatus) { t.told(m, s, q) })
	phase := m.random.Float64() * 2 // alarms of different stages act one after the other
	m.each(trackPeriod, trackPeriod, func() {
		if t.close() {
			m.at(m.now+alarmDelay+phase, func() { t.look(m, s) })
		}
	})
	period := m.o.Policy.WakePeriod.Seconds()
	m.each(period, period, func() {
		wakes := t.needed && t.live < 1
		t.needed, t.live = false, 0
		if wakes {
			m.at(m.now+alarmDelay+phase, func() { t.wake(m, s) })
		}
	})
}

// told keeps published figures for the data points of their minute and of the alarm's period.
func (t *tracking) told(m *model, s *station, q registry.QueueStatus) {
	of, needed := m.figure(q, s)
	load := of.Backlog().Seconds()
	if m.o.Policy.Busy {
		load = max(load, of.Utilization()*m.o.Policy.Target.Seconds())
	}
	if m.o.Policy.Together && needed || m.o.Policy.Starts && of.Workers < 1 {
		load = max(load, leastLoad)
	}
	t.period, t.seen = max(t.period, load), true
	t.needed, t.live = t.needed || needed, max(t.live, of.Workers)
}

// leastLoad keeps one worker, and starts none.
const leastLoad = 0.001

// close ends a minute, and reports whether there were figures.
func (t *tracking) close() bool {
	if !t.seen {
		return false
	}
	t.points = append(t.points, t.period)
	if len(t.points) > inDataPoints {
		t.points = t.points[1:]
	}
	t.period, t.seen = 0, false
	return true
}

// look is the act of both alarms of target tracking.
func (t *tracking) look(m *model, s *station) {
	value := t.points[len(t.points)-1]
	target := m.o.Policy.Target.Seconds()
	n := len(t.points)
	high := n >= outDataPoint
	for _, p := range t.points[max(0, n-outDataPoint):] {
		high = high && p > target
	}
	low, most := n == inDataPoints, 0.0
	for _, p := range t.points {
		low, most = low && p < inShare*target, max(most, p)
	}
	switch {
	case high:
		// While a scale-out is under way, what it adds is part of the next one.
		from := s.desired
		if m.now < t.outUntil {
			from = t.base
		}
		if to := min(ceil(float64(from)*value/target), m.o.Most); to > s.desired {
			if m.now >= t.outUntil {
				t.base = s.desired
			}
			t.outUntil = m.now + m.o.Policy.OutCooldown.Seconds()
			s.want(to)
		}
	case low && m.now >= t.inAfter:
		if to := ceil(float64(s.desired) * most / target); to < s.desired {
			t.inAfter = m.now + m.o.Policy.InCooldown.Seconds()
			s.want(to)
		}
	}
}

// wake is the act of the alarm of a stage without workers.
func (t *tracking) wake(m *model, s *station) {
	if m.now >= t.wakeFrom {
		t.wakeFrom = m.now + m.o.Policy.WakeCooldown.Seconds()
		s.want(s.desired + 1)
	}
}

func (t *tracking) protects(w *worker) bool {
	if !w.live || w.busy < 0 {
		return false
	}
	now := w.s.m.now
	if len(w.steps) == 0 && now-w.idle >= protectIdle {
		return false
	}
	return math.Mod(now-w.busy, mostProtect+protectGap) < mostProtect
}

// keda scales as KEDA and the horizontal pod autoscaler do.
type keda struct {
	of     registry.StageQueue
	needed bool
	active float64 // when the stage was last needed
	wanted []wanted
}

type wanted struct {
	at float64
	n  int
}

func (k *keda) start(m *model, s *station) {
	phase := m.random.Float64()
	m.each(phase*scrapeEvery, scrapeEvery, func() { k.of, k.needed = m.figure(m.queueStatus(), s) })
	m.each(phase*m.o.Policy.Poll.Seconds(), m.o.Policy.Poll.Seconds(), func() { k.poll(m, s) })
	m.each(phase*hpaEvery, hpaEvery, func() { k.look(m, s) })
}

// poll starts the first worker, and ends the last one.
func (k *keda) poll(m *model, s *station) {
	needed := k.needed || k.of.Startable() > 0 || m.o.Policy.Busy && k.of.Running > 0
	switch {
	case needed:
		k.active = m.now
		if s.desired == 0 {
			s.want(1)
		}
	case s.desired > 0 && m.now-k.active >= m.o.Policy.IdleFor.Seconds():
		s.want(0)
		k.wanted = nil
	}
}

// look is the horizontal pod autoscaler, which has one worker at least.
func (k *keda) look(m *model, s *station) {
	live := s.live()
	if s.desired == 0 {
		return
	}
	want := s.desired
	if live > 0 {
		want = 1
		ratios := []float64{k.of.Backlog().Seconds() / m.o.Policy.Target.Seconds()}
		if m.o.Policy.Busy {
			ratios = append(ratios, k.of.Utilization())
		}
		for _, ratio := range ratios {
			n := s.desired
			if math.Abs(1-ratio) > hpaTolerance {
				n = ceil(float64(live) * ratio)
			}
			want = max(want, n)
		}
	}
	want = min(want, max(2*s.desired, s.desired+hpaLeastStep), m.o.Most)
	k.wanted = append(k.wanted, wanted{m.now, want})
	for len(k.wanted) > 0 && m.now-k.wanted[0].at > m.o.Policy.Settle.Seconds() {
		k.wanted = k.wanted[1:]
	}
	if want < s.desired {
		for _, w := range k.wanted {
			want = max(want, min(w.n, s.desired))
		}
	}
	s.want(want)
}

// protects: Kubernetes ends any pod.
func (k *keda) protects(*worker) bool { return false }
