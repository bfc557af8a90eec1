import type { BaseLlm, BaseTool, LlmAgent } from '@google/adk'
import { AgentTool } from '@google/adk'

import { assistant } from '../../support/agents.ts'

/** Agents that use each other as tools. The innermost has the tools. */
export function nest(names: readonly string[]) {
  return (model: BaseLlm, tools: readonly BaseTool[]): LlmAgent =>
    assistant(model, {
      tools: names
        .toReversed()
        .reduce<BaseTool[]>(
          (inner, name) => [new AgentTool({ agent: assistant(model, { name, tools: inner }) })],
          [...tools],
        ),
    })
}

/** Text that makes the agents call each other, and the innermost do what `script` says. */
export function through(names: readonly string[], script: string): string {
  return names
    .toReversed()
    .reduce(
      (request, name) =>
        `[[call ${name} ${JSON.stringify({ request })}]][[then]][[say After ${name}.]]`,
      script,
    )
}
