import type { Event } from '@google/adk'
import { getFunctionCalls, getFunctionResponses, isLlmAgent } from '@google/adk'

import { findInner, readNotes } from '../../agent/events/event-notes.ts'
import { listAgents } from '../../agent/tree/list-agents.ts'
import { matchesName } from '../../approvals/policy.ts'
import { readToolClaims } from '../../calls/call-terms.ts'
import type { RootAgent } from '../../server/chats/chat-agents.ts'
import { findTool } from '../../server/chats/find-tool.ts'

interface TrustOptions {
  readonly agents: ReadonlyMap<string, RootAgent>
  /** The names and patterns of tools whose results are not trusted. */
  readonly untrustedTools: readonly string[]
}

/** Whether text from outside entered a conversation after a call was made. If the conversation does not contain the call: at any time. */
export async function hasUntrustedText(
  events: readonly Event[],
  toolCallId: string,
  options: TrustOptions,
): Promise<boolean> {
  const made = events.findIndex((event) =>
    getFunctionCalls(event).some(({ id }) => id === toolCallId),
  )
  const since = events.slice(made + 1).map((event) => findInner(event) ?? event)
  const speakers = [...options.agents.values()].flatMap((root) => [...listAgents(root)])
  const models = new Set(speakers.filter(isLlmAgent).map(({ name }) => name))
  const others = new Set(speakers.map(({ name }) => name).filter((name) => !models.has(name)))
  if (since.some((event) => event.groundingMetadata || isForeign(event, { models, others })))
    return true
  for (const name of new Set(since.flatMap(listResults)))
    if (await isUntrusted(name, options)) return true
  return false
}

/** Whether an agent spoke that is not a model of this server, such as one on another server. Nodes of a workflow are code of the application. */
function isForeign(
  { author = 'user', content, nodeInfo }: Event,
  { models, others }: Readonly<Record<'models' | 'others', ReadonlySet<string>>>,
): boolean {
  const hasText = content?.parts?.some(({ text }) => text) === true
  if (!hasText || author === 'user' || models.has(author)) return false
  return others.has(author) || nodeInfo === undefined
}

/** Returns the names of the tools whose results an event contains. */
function listResults(event: Event): string[] {
  const { pending = [] } = readNotes(event)
  return getFunctionResponses(event).flatMap(({ id = '', name = '' }) =>
    pending.includes(id) || isOfAdk(name) ? [] : name,
  )
}

/** Whether ADK itself makes the results of a tool. */
function isOfAdk(name: string): boolean {
  return name === 'transfer_to_agent' || name === 'exit_loop' || name.startsWith('adk_request_')
}

async function isUntrusted(
  toolName: string,
  { agents, untrustedTools }: TrustOptions,
): Promise<boolean> {
  if (untrustedTools.some((pattern) => matchesName(pattern, toolName))) return true
  for (const agent of agents.values()) {
    const tool = await findTool(agent, toolName)
    if (tool) return readToolClaims(tool)?.annotations.openWorldHint === true
  }
  // It is not known where the result came from.
  return true
}
