import type { BaseTool, Event, LlmAgent, RunConfig, Runner, Session } from '@google/adk'
import {
  Context,
  InvocationContext,
  isBaseAgent,
  isBaseTool,
  isLlmAgent,
  ToolConfirmation,
} from '@google/adk'
import type { FunctionCall } from '@google/genai'

import type { Approval } from '../approvals/approval.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import type { ToolCall } from '../agent/tool-call.ts'

export interface CallEnvironment {
  readonly runner: Runner
  readonly session: Session
  readonly artifacts: InvocationContext['artifactService']
  readonly runConfig: RunConfig
  readonly signal: AbortSignal
}

/**
 * Makes an approved call ready to run as ADK would run it when it resumes. Nothing where only ADK can tell what would run, or
 * whether: the call is not open in the session, its agent has callbacks of its own that may end the run first, its tools come from
 * a toolset, or the tool may leave its call without a result.
 */
export function prepareCall(
  approval: Approval,
  { runner, session, ...around }: CallEnvironment,
): ToolCall | undefined {
  const open = findOpenCall(session.events, approval)
  const agent = open && findAgent(runner.agent, open.event.author)
  const tool = agent && findOwnTool(agent, approval.toolName)
  if (!tool || tool.isLongRunning) return undefined
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

/** The agent of that name, if nothing of its own comes before its tools. */
function findAgent(root: Runner['agent'], name = ''): LlmAgent | undefined {
  const agent = isBaseAgent(root) ? root.findAgent(name) : undefined
  return isLlmAgent(agent) && agent.beforeAgentCallback.length === 0 ? agent : undefined
}

/** The call that a question is about, unless it has a response since; the agent that called is the one that asked. */
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

/** The tool that ADK would take: the last one of that name. What a toolset or a node gives, ADK makes anew for every run. */
function findOwnTool({ tools }: LlmAgent, toolName: string): BaseTool | undefined {
  const own = tools.filter((tool) => isBaseTool(tool))
  return own.length === tools.length ? own.findLast(({ name }) => name === toolName) : undefined
}

function toConfirmation({ id }: Approval) {
  const functionResponse = { id, name: CONFIRMATION_TOOL, response: { confirmed: true } }
  return { role: 'user', parts: [{ functionResponse }] }
}
