import type { Event } from '@google/adk'

import { readNotes } from '../../../src/agent/events/event-notes.ts'
import type { Approval } from '../../../src/approvals/approval.ts'
import type { AuditEvent } from '../../../src/approvals/audit-entry.ts'
import type { Store } from '../../../src/store/index.ts'
import { readNodeMoment } from './node-workflow.ts'
import type { Reached } from './payment-server.ts'

/** The names of the changes of an approval. */
const MOMENTS: Partial<Record<AuditEvent['type'], string>> = {
  approved: 'decision',
  denied: 'decision',
  started: 'claim',
  succeeded: 'outcome',
  failed: 'outcome',
}

/** The name of a change of a sign-in. */
function momentOf(moment: string, { terms }: Approval): string {
  return terms.kind === 'sign-in' ? `sign-in-${moment}` : moment
}

/** Chats whose process is killed between the decision and the claim. */
const TWO_COMMITS = /\.(?:after-decision|before-claim)\./

/** The agent whose reply an event stores as the result of the call that used it as a tool, at any depth. */
function agentOfReply(event: Event): string | undefined {
  const { nested } = readNotes(event)
  const { content, customMetadata } = nested?.event ?? event
  const { pending = [] } = readNotes({ customMetadata })
  return content?.parts?.find(
    ({ functionResponse }) =>
      AGENTS.has(functionResponse?.name) && !pending.includes(functionResponse?.id ?? ''),
  )?.functionResponse?.name
}

const AGENTS: ReadonlySet<string | undefined> = new Set(['desk', 'agency'])

/** Makes the store report before and after each write that belongs to the scenario of an approval. */
export function hookStore(store: Store, reached: Reached): Store {
  const { approvals, sessions } = store
  const insert = approvals.insert.bind(approvals)
  approvals.insert = (approval, ...rest) =>
    between(momentOf('question', approval), approval.chat.chatId, () => insert(approval, ...rest))
  const replace = approvals.replace.bind(approvals)
  approvals.replace = (transition) => {
    const moment = MOMENTS[transition.entry.event.type]
    const work = () => replace(transition)
    return moment
      ? between(momentOf(moment, transition.next), transition.next.chat.chatId, work)
      : work()
  }
  const replaceAll = approvals.replaceAll.bind(approvals)
  approvals.replaceAll = (transitions) =>
    transitions.toReversed().reduce(
      (work, { entry, next }) =>
        () => {
          const moment = MOMENTS[entry.event.type]
          return moment ? between(momentOf(moment, next), next.chat.chatId, work) : work()
        },
      () => replaceAll(transitions),
    )()
  const lockChat = approvals.lockChat.bind(approvals)
  const locked = new Map<string, number>()
  approvals.lockChat = async (chat, lock) => {
    const attempt = (locked.get(chat.chatId) ?? 0) + 1
    locked.set(chat.chatId, attempt)
    // Simulates that another process holds the chat lock at the decision: decision and claim are then two commits.
    if (attempt === 2 && TWO_COMMITS.test(chat.chatId)) return false
    return lockChat(chat, lock)
  }
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = (request) => {
    const isResponse = JSON.stringify(request.event.customMetadata ?? {}).includes('"decided":')
    const work = () => appendEvent(request)
    const agent = agentOfReply(request.event)
    if (agent !== undefined) return between(agent, request.session.id, work)
    if (isResponse) return between('response', request.session.id, work)
    const moment = readNodeMoment(request.event)
    return moment === undefined ? work() : between(moment, request.session.id, work)
  }
  return store

  async function between<Result>(
    moment: string,
    chatId: string,
    work: () => Promise<Result>,
  ): Promise<Result> {
    await reached(`before ${moment}`, chatId)
    const result = await work()
    await reached(`after ${moment}`, chatId)
    return result
  }
}
