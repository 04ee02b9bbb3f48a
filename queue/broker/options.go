package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// version is what IDENTIFY answers: clients choose what to speak by it, so it is nsqd's.
	version = "1.3.0"

	// minClientTime is the shortest heartbeat or message timeout that a client may ask for, as with
	// nsqd. Shorter ones can only be set as the broker's defaults, in Options.
	minClientTime = time.Second

	// maxOutbox is how many bytes wait for one client before it is given no more messages.
	maxOutbox = 256 << 10

	// maxIdentify and maxSecret are how many bytes a client may send before it is known.
	maxIdentify = 64 << 10
	maxSecret   = 1 << 10

	// What a topic, a channel and a message take beside their names' and bodies' bytes, rounded up.
	topicCost   = 1 << 10
	channelCost = 1 << 10
	messageCost = 384

	acceptPause = 50 * time.Millisecond
	lingerTime  = time.Second
)

// Options are the limits of a broker. The zero value of each field means nsqd's default, named with
// the field.
type Options struct {
	MsgTimeout           time.Duration // how long a client may hold a message untouched; 60 s
	MaxMsgTimeout        time.Duration // how long a client may hold a message in all, touched or not; 15 min
	MaxReqTimeout        time.Duration // the longest delay of REQ (longer ones are cut) and DPUB (refused); 1 h
	HeartbeatInterval    time.Duration // between heartbeats to a client that asks for none in particular; 30 s
	MaxHeartbeatInterval time.Duration // the longest that a client may ask for; 60 s
	MaxRdyCount          int64         // the most messages that one client may hold; 2500
	MaxMsgSize           int64         // bytes of one message; 1 MiB
	MaxBodySize          int64         // bytes of one MPUB; 5 MiB
	MaxMemory            int64         // bytes that topics, channels, messages and bodies on their way take; 64 MiB
	MaxClients           int           // connections at a time; 1000
	Remote               bool          // others than this machine may be served; otherwise Listen takes loopback only
	AuthSecret           string        // what clients say by AUTH before they publish or subscribe; "": nothing
	AuthTime             time.Duration // how long a client may take to say AuthSecret, before it is disconnected; 5 s
	BroadcastAddress     string        // the host that the lookup answers; "": the one listened on, or the one asked for when that is a wildcard
	Log                  *slog.Logger  // nil: nothing is logged
}

func (o Options) withDefaults() Options {
	setDefault(&o.MsgTimeout, time.Minute)
	setDefault(&o.MaxMsgTimeout, 15*time.Minute)
	setDefault(&o.MaxReqTimeout, time.Hour)
	setDefault(&o.HeartbeatInterval, 30*time.Second)
	setDefault(&o.MaxHeartbeatInterval, time.Minute)
	setDefault(&o.MaxRdyCount, 2500)
	setDefault(&o.MaxMsgSize, 1<<20)
	setDefault(&o.MaxBodySize, 5<<20)
	setDefault(&o.MaxMemory, 64<<20)
	setDefault(&o.MaxClients, 1000)
	setDefault(&o.AuthTime, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o Options) check() error {
	var errs []error
	positive := func(name string, value int64) {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	positive("MsgTimeout", int64(o.MsgTimeout))
	positive("MaxMsgTimeout", int64(o.MaxMsgTimeout))
	positive("MaxReqTimeout", int64(o.MaxReqTimeout))
	positive("HeartbeatInterval", int64(o.HeartbeatInterval))
	positive("MaxHeartbeatInterval", int64(o.MaxHeartbeatInterval))
	positive("MaxRdyCount", o.MaxRdyCount)
	positive("MaxMsgSize", o.MaxMsgSize)
	positive("MaxBodySize", o.MaxBodySize)
	positive("MaxMemory", o.MaxMemory)
	positive("MaxClients", int64(o.MaxClients))
	positive("AuthTime", int64(o.AuthTime))
	if o.MsgTimeout > o.MaxMsgTimeout {
		errs = append(errs, fmt.Errorf("MsgTimeout %s is longer than MaxMsgTimeout %s", o.MsgTimeout, o.MaxMsgTimeout))
	}
	return errors.Join(errs...)
}
