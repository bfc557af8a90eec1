import type { BaseTool, Event, LlmAgent, RunConfig, Runner, Session } from '@google/adk'
import {
  Context,
  InvocationContext,
  isAgentTool,
  isBaseAgent,
  isBaseTool,
  isLlmAgent,
  ToolConfirmation,
} from '@google/adk'
import type { FunctionCall } from '@google/genai'

import type { Approval } from '../approvals/approval.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import type { ToolCall } from '../agent/tool-call.ts'

interface CallEnvironment {
  readonly runner: Runner
  readonly session: Session
  readonly artifacts: InvocationContext['artifactService']
  readonly runConfig: RunConfig
  readonly signal: AbortSignal
}

/**
 * Prepares an approved call to run as ADK would run it on resume. Returns undefined if only ADK can run it: the call
 * is not open in the session, its agent has callbacks that may end the run first, its tools come from a toolset, the
 * tool is an agent, which may pause, or the tool may return without a result.
 */
export function prepareCall(
  approval: Approval,
  { runner, session, ...around }: CallEnvironment,
): ToolCall | undefined {
  const open = findOpenCall(session.events, approval)
  const agent = open && findAgent(runner.agent, open.event.author)
  const tool = agent && findOwnTool(agent, approval.toolName)
  if (!tool || tool.isLongRunning || isAgentTool(tool)) return undefined
  const { sessionService, pluginManager, memoryService, credentialService } = runner
  const { artifacts, runConfig, signal } = around
  const invocationContext = new InvocationContext({
    invocationId: open.event.invocationId,
    agent,
    session,
    userContent: toConfirmation(approval),
    runConfig,
    sessionService,
    pluginManager,
    abortSignal: signal,
    ...(artifacts && { artifactService: artifacts }),
    ...(memoryService && { memoryService }),
    ...(credentialService && { credentialService }),
  })
  const toolContext = new Context({
    invocationContext,
    functionCallId: approval.toolCallId,
    toolConfirmation: new ToolConfirmation({ confirmed: true }),
  })
  return { tool, toolArgs: open.call.args ?? {}, toolContext }
}

/** Returns the agent with this name, unless it has callbacks that run before its tools. */
function findAgent(root: Runner['agent'], name = ''): LlmAgent | undefined {
  const agent = isBaseAgent(root) ? root.findAgent(name) : undefined
  return isLlmAgent(agent) && agent.beforeAgentCallback.length === 0 ? agent : undefined
}

/** Returns the call of an approval request, unless it has a response. The agent that made the call also made the request. */
function findOpenCall(
  events: readonly Event[],
  { id, toolCallId, toolName }: Approval,
): { readonly event: Event; readonly call: FunctionCall } | undefined {
  const asking = events.findLastIndex((event) =>
    callsOf(event).some((call) => call.id === id && call.name === CONFIRMATION_TOOL),
  )
  const author = events[asking]?.author
  const isAnswered = events
    .slice(asking + 1)
    .some(({ content }) =>
      content?.parts?.some(({ functionResponse }) => functionResponse?.id === toolCallId),
    )
  if (author === undefined || isAnswered) return undefined
  for (const event of events.slice(0, asking)) {
    const call = callsOf(event).find(({ id: callId }) => callId === toolCallId)
    if (call && event.author === author) return call.name === toolName ? { event, call } : undefined
  }
  return undefined
}

function callsOf({ content }: Event): FunctionCall[] {
  return content?.parts?.flatMap(({ functionCall }) => functionCall ?? []) ?? []
}

/** Returns the last tool with this name, as ADK does. ADK creates the tools of a toolset or node for each run. */
function findOwnTool({ tools }: LlmAgent, toolName: string): BaseTool | undefined {
  const own = tools.filter((tool) => isBaseTool(tool))
  return own.length === tools.length ? own.findLast(({ name }) => name === toolName) : undefined
}

function toConfirmation({ id }: Approval) {
  const functionResponse = { id, name: CONFIRMATION_TOOL, response: { confirmed: true } }
  return { role: 'user', parts: [{ functionResponse }] }
}
