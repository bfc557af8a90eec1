import type { BaseTool } from '@google/adk'
import { BaseTool as Tool, FunctionTool, isFunctionTool } from '@google/adk'

import type { FoundTool } from '../agent/tree/agent-graph.ts'
import type { ApprovalPolicy } from '../approvals/policy.ts'
import { findEntry } from '../approvals/policy.ts'

/** Whether calls of a tool need approval, and what says so. */
export interface ApprovalNeed {
  readonly need: 'always' | 'sometimes' | 'never'
  readonly because: string
}

/** Explains whether calls of a tool need approval. The policy overrides the tool. */
export function explainApproval(
  { name, tool }: Pick<FoundTool, 'name' | 'tool'>,
  policy: ApprovalPolicy,
): ApprovalNeed {
  if (typeof policy === 'function')
    return { need: 'sometimes', because: '`approvals` decides for each call' }
  const entry = findEntry(policy, name)
  const verdict = entry === undefined ? undefined : policy[entry]
  if (verdict === undefined) return explainTool(tool)
  const option = /^\w+$/.test(entry ?? '') ? `\`approvals.${entry}\`` : `\`approvals['${entry}']\``
  if (typeof verdict === 'function')
    return { need: 'sometimes', because: `${option} decides for each call` }
  return gates(verdict)
    ? { need: 'always', because: `${option} requires it` }
    : { need: 'never', because: `${option} exempts it` }
}

/** Explains whether a tool itself asks for approval. A tool that overrides ADK's check may do so for any call. */
function explainTool(tool: BaseTool | undefined): ApprovalNeed {
  const never = { need: 'never', because: 'neither the tool nor a policy requires it' } as const
  if (!tool) return never
  const check: unknown = Reflect.get(tool, 'checkRequireConfirmation')
  if (isFunctionTool(tool) && check === FunctionTool.prototype.checkRequireConfirmation) {
    const required: unknown = Reflect.get(tool, 'requireConfirmation')
    if (required === false) return never
    return required === true
      ? { need: 'always', because: '`requireConfirmation` of the tool requires it' }
      : { need: 'sometimes', because: '`requireConfirmation` of the tool decides for each call' }
  }
  return check === Tool.prototype.checkRequireConfirmation
    ? never
    : { need: 'sometimes', because: 'its class overrides `checkRequireConfirmation`' }
}

/** Whether a verdict of a policy may require approval. */
export function gates(
  verdict: Exclude<ApprovalPolicy, (...args: never) => unknown>[string] | undefined,
) {
  return typeof verdict === 'object' ? verdict.required !== false : verdict !== false
}
