package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nsqio/go-nsq"
)

// ConsumerConfig configures a Consumer.
type ConsumerConfig struct {
	Topic   string
	Channel string // "": Channel, shared by all workers
	// Addrs are nsqds, each host:port, to connect to directly. LookupAddrs are nsqlookupds, each
	// host:port or an http URL, that find the nsqds. At least one of the two is required.
	Addrs       []string
	LookupAddrs []string
	// AuthSecret is as in ProducerConfig.
	AuthSecret string
	// Free is the initial value of SetFree.
	Free int
	// MsgTimeout is how long the server waits before it delivers an untouched message again: at
	// least a second; 0 means DefaultMsgTimeout.
	MsgTimeout time.Duration
	Timing     Timing
	Log        *slog.Logger // nil: no log
}

// complete sets the defaults, validates the fields, and returns go-nsq's configuration.
func (cfg *ConsumerConfig) complete() (*nsq.Config, error) {
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Log = orDiscard(cfg.Log)
	setDefault(&cfg.MsgTimeout, DefaultMsgTimeout)
	if cfg.Channel == "" {
		cfg.Channel = Channel
	}
	cfg.Free = max(cfg.Free, 0)
	errs := []error{checkTopic(cfg.Topic), checkAddrs(cfg.Addrs)}
	if !nsq.IsValidChannelName(cfg.Channel) {
		errs = append(errs, fmt.Errorf("channel name %q is not valid", cfg.Channel))
	}
	if len(cfg.Addrs)+len(cfg.LookupAddrs) == 0 {
		errs = append(errs, errors.New("no nsqd and no nsqlookupd address"))
	}
	for _, addr := range cfg.LookupAddrs {
		_, err := lookupURL(addr, cfg.Topic)
		errs = append(errs, err)
	}
	if cfg.MsgTimeout < time.Second {
		errs = append(errs, fmt.Errorf("message timeout %s is under a second", cfg.MsgTimeout))
	}
	config := nsq.NewConfig()
	config.MaxAttempts = 0 // by default go-nsq drops a message after its fifth delivery
	config.MsgTimeout = cfg.MsgTimeout
	config.DialTimeout = 2 * time.Second
	config.WriteTimeout = 2 * time.Second
	config.HeartbeatInterval = 15 * time.Second
	config.ReadTimeout = 35 * time.Second // two heartbeats and some: a hanging server is given up
	config.UserAgent = userAgent
	config.AuthSecret = cfg.AuthSecret
	return config, errors.Join(append(errs, config.Validate())...)
}
