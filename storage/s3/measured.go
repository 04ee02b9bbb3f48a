package s3

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/holdfast/holdfast/metrics"
)

// bucketStore is the label of this driver's metrics.
const bucketStore = "bucket"

// measured measures each operation with its repeats.
func measured(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("HoldfastMetrics",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			begun := time.Now()
			out, about, err := next.HandleInitialize(ctx, in)
			metrics.StorageRequest.Since(begun, bucketStore, middleware.GetOperationName(ctx), outcome(err))
			if err == nil {
				countBytes(in.Parameters, out.Result)
			}
			return out, about, err
		}), middleware.Before)
}

// countBytes counts the bytes of objects in a request that succeeded. Of an object that is read it
// counts what the service announced.
func countBytes(in, out any) {
	switch in := in.(type) {
	case *s3.PutObjectInput:
		countLength("written", in.ContentLength)
	case *s3.UploadPartInput:
		countLength("written", in.ContentLength)
	}
	if out, ok := out.(*s3.GetObjectOutput); ok {
		countLength("read", out.ContentLength)
	}
}

func countLength(direction string, length *int64) {
	metrics.StorageBytes.Add(float64(max(0, aws.ToInt64(length))), bucketStore, direction)
}

// outcome tells a refusal, which is an answer, from a failure.
func outcome(err error) string {
	var answered *awshttp.ResponseError
	if errors.As(err, &answered) {
		if status := answered.HTTPStatusCode(); status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
			return "refused"
		}
	}
	return metrics.Outcome(err)
}
