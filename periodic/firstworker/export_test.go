package firstworker

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/holdfast/holdfast/internal/awstest"
)

// Timeout is timeout.
const Timeout = timeout

// AskBy makes services ask by a client of the test.
func AskBy(s *Services, client aws.HTTPClient) {
	s.client = ecs.NewFromConfig(awstest.Config(client))
}
