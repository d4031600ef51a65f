"""The scenarios of the demo project: the matrix of G3, within four minutes on two cores."""

from dataclasses import dataclass

from pocs.projects.choices import ScenarioKind
from pocs.projects.scenario_spec import Interruption, ScenarioSpec

TENANTS = ("retail", "insurance")
APPLICATIONS = ("service-desk", "contract-summary")


@dataclass(frozen=True)
class DemoScenario:
    slug: str
    name: str
    kind: ScenarioKind
    spec: ScenarioSpec


def _spec(
    input_tokens: int, output_tokens: int, concurrency: int, requests: int, **more: object
) -> ScenarioSpec:
    fixed: dict[str, object] = {
        "tenants": TENANTS,
        "applications": APPLICATIONS,
        "seed": 7,
        "timeout_s": 300.0,
    }
    return ScenarioSpec(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=concurrency,
        requests=requests,
        **(fixed | more),  # type: ignore[arg-type]
    )


#: two input lengths, two output lengths, two concurrency levels, interruptions in two phases
SCENARIOS = (
    DemoScenario(
        "short-request",
        "坐席短问答 Short question to the service desk",
        ScenarioKind.SHORT_REQUEST,
        _spec(64, 16, 2, 16),
    ),
    DemoScenario(
        "short-long-answer",
        "短问长答 Short question with a long answer",
        ScenarioKind.SHORT_REQUEST,
        _spec(64, 64, 2, 6),
    ),
    DemoScenario(
        "long-context",
        "长合同摘要 Summary of a long contract",
        ScenarioKind.LONG_CONTEXT,
        _spec(512, 16, 2, 8, shared_prefix_tokens=128),
    ),
    DemoScenario(
        "high-concurrency",
        "多坐席并发 Many users at once",
        ScenarioKind.HIGH_CONCURRENCY,
        _spec(64, 16, 16, 32),
    ),
    DemoScenario(
        "long-concurrent",
        "多人长合同 Long contracts of many users at once",
        ScenarioKind.HIGH_CONCURRENCY,
        _spec(512, 64, 16, 16, shared_prefix_tokens=128),
    ),
    DemoScenario(
        "streaming",
        "流式应答 Streamed answers while others join",
        ScenarioKind.STREAMING,
        _spec(64, 64, 16, 16, language="mixed"),
    ),
    DemoScenario(
        "interruption",
        "中途离开 Users who leave before the answer is complete",
        ScenarioKind.INTERRUPTION,
        _spec(
            64,
            64,
            16,
            20,
            interruptions=(
                Interruption(phase="decode", every=4, after_tokens=8),
                Interruption(phase="prefill", every=6, after_tokens=0),
            ),
        ),
    ),
)
