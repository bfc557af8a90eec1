import type { BaseTool } from '@google/adk'

import type { AgentGraph } from '../../agent/tree/agent-graph.ts'
import { readAgentGraph } from '../../agent/tree/agent-graph.ts'
import type { GraphDescription } from '../../agent/tree/describe-graph.ts'
import { describeGraph, textOf } from '../../agent/tree/describe-graph.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { readArgumentsJsonSchema } from '../../calls/arguments-schema.ts'
import { explainApproval } from '../../calls/explain-approval.ts'
import type { CoreSettings } from '../module.ts'

type DescribedSettings = Pick<CoreSettings, 'agents' | 'approvals'>

/** An agent, as the page shows it. */
export interface AgentDescription {
  readonly name: string
  readonly description?: string
  readonly tools: readonly ToolDescription[]
  readonly graph: GraphDescription
}

interface ToolDescription {
  readonly name: string
  readonly description?: string
  /** The JSON Schema of its arguments. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly approval: 'always' | 'sometimes' | 'never'
}

/** Describes the agents of a bridge. The tools of MCP servers are not included: they are known only when a server is connected. */
export function describeAgents({ agents, approvals }: DescribedSettings): AgentDescription[] {
  return Array.from(agents, ([name, root]) => {
    const found = readAgentGraph(root, 'agent', false)
    return {
      name: name === '' ? root.name : name,
      ...textOf(root),
      tools: describeTools(found, approvals),
      graph: describeGraph(root, found),
    }
  })
}

function describeTools({ tools }: AgentGraph, approvals: ApprovalPolicy): ToolDescription[] {
  const byName = new Map<string, ToolDescription>()
  for (const found of tools) {
    const { name, tool } = found
    const parameters = tool && readSchema(tool)
    byName.set(name, {
      name,
      ...(tool && textOf(tool)),
      ...(parameters && { parameters }),
      approval: explainApproval(found, approvals).need,
    })
  }
  return [...byName.values()]
}

function readSchema(tool: BaseTool): Record<string, unknown> | undefined {
  try {
    return readArgumentsJsonSchema(tool)
  } catch {
    // A declaration that the tool cannot make. Its first call reports the error.
    return undefined
  }
}
