// Package awschain loads AWS's default chain, for all clients of AWS's services.
package awschain

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// Load returns the configuration of AWS's default chain: environment, shared files, task or instance role.
// What AWS's library has to say beside its errors goes to log, or nowhere if that is nil: by default it
// would go to standard error, in lines that no other part of Holdfast writes.
func Load(ctx context.Context, log *slog.Logger, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	var to logging.Logger = logging.Nop{}
	if log != nil {
		to = logger{ctx, log}
	}
	return config.LoadDefaultConfig(ctx, append([]func(*config.LoadOptions) error{config.WithLogger(to)}, options...)...)
}

// logger is a logging.ContextLogger.
type logger struct {
	ctx context.Context
	log *slog.Logger
}

// WithContext implements logging.ContextLogger.
func (l logger) WithContext(ctx context.Context) logging.Logger { return logger{ctx, l.log} }

// Logf implements logging.Logger.
func (l logger) Logf(kind logging.Classification, format string, v ...any) {
	level := slog.LevelWarn
	if kind == logging.Debug {
		level = slog.LevelDebug
	}
	l.log.Log(l.ctx, level, "a message of AWS's library", "text", fmt.Sprintf(format, v...))
}
