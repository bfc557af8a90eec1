import { type BaseSessionService, createEvent, type Event, type Session } from '@google/adk'
import type { ApprovalStore } from '../../approvals/approval-store.ts'
import type { ChatLock } from '../../locks/lock-store.ts'
import type { Approval, ApprovalStep, ApprovalTerms } from '../../approvals/approval.ts'
import { isRefusal, type Refusal } from '../../approvals/approval.ts'
import type { AuditEntry } from '../../approvals/audit-entry.ts'
import { type Decider } from '../../approvals/deciders.ts'
import { digestCall } from '../../approvals/digest.ts'
import type { ApprovalRequest } from '../../approvals/ledger.ts'
import {
  nextApproval,
  type ApprovalCommand,
  type Transition,
} from '../../approvals/next-approval.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'

export const chat: AppChatRef = { appName: 'demo', principalId: 'hanako', chatId: 'chat-1' }

export const hanako: Decider = { id: 'hanako', roles: [] }
export const manager: Decider = { id: 'ichiro', roles: ['manager'] }
export const otherManager: Decider = { id: 'jiro', roles: ['manager', 'staff'] }
export const executive: Decider = { id: 'sachiko', roles: ['executive'] }
export const stranger: Decider = { id: 'mallory', roles: ['staff'] }

export const ownerStep: ApprovalStep = { count: 1, principals: ['hanako'], roles: [] }
export const managerStep: ApprovalStep = { count: 1, principals: [], roles: ['manager'] }
export const executiveStep: ApprovalStep = { count: 1, principals: [], roles: ['executive'] }

export function termsOf(...chain: ApprovalStep[]): ApprovalTerms {
  return { chain: chain.length === 0 ? [ownerStep] : chain, idempotent: false }
}

export const NOON = 1_800_000_000_000

/** A pending approval, requested at noon, with a deadline of one minute. */
export function askedFor(fields: Partial<Approval> = {}): Approval {
  const call = {
    chat,
    toolCallId: 'call-1',
    toolName: 'process_payment',
    args: { amount: 50, recipient: '花子' },
    ...fields,
  }
  return {
    id: `approval of ${call.toolCallId}`,
    messageId: 'message-1',
    ...call,
    digest: digestCall(call),
    terms: termsOf(),
    requestedAt: NOON,
    deadline: NOON + 60_000,
    votes: [],
    state: { name: 'requested' },
    version: 0,
    ...fields,
  }
}

export function requestOf(fields: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    id: 'approval-1',
    chat,
    messageId: 'message-1',
    toolCallId: 'call-1',
    toolName: 'process_payment',
    args: { amount: 50, recipient: '花子' },
    terms: termsOf(),
    deadlineMs: 60_000,
    ...fields,
  }
}

export function entryOf(approval: Approval): AuditEntry {
  const {
    id: approvalId,
    messageId,
    toolCallId,
    toolName,
    args,
    digest,
    terms,
    deadline,
  } = approval
  const shown = { messageId, toolCallId, toolName, args, digest, terms, deadline }
  const event = { type: 'requested', ...shown } as const
  return { approvalId, chat: approval.chat, version: 0, at: approval.requestedAt, event }
}

export function approve(by: Decider): ApprovalCommand {
  return { type: 'decide', by, approved: true }
}

export function deny(by: Decider, reason = 'no'): ApprovalCommand {
  return { type: 'decide', by, approved: false, reason }
}

/** The claim of the call of an approval. */
export function claimOf(approval: Approval, worker = 'worker-1'): ApprovalCommand {
  const { toolCallId, toolName, digest } = approval
  return { type: 'claim', toolCallId, toolName, digest, worker }
}

/** Applies a command that must be possible. */
export function step(approval: Approval, command: ApprovalCommand, now = NOON + 1_000): Transition {
  const result = nextApproval(approval, command, now)
  if (isRefusal(result)) throw new Error(`refused: ${result.refused}`)
  return result
}

/** Applies commands that must be possible, and returns the result. */
export function after(approval: Approval, ...commands: ApprovalCommand[]): Approval {
  return commands.reduce((current, command) => step(current, command).next, approval)
}

export function taken(result: Approval | Refusal): Approval {
  if (isRefusal(result)) throw new Error(`refused: ${result.refused}`)
  return result
}

export { collect } from '../../shared/async.ts'

export const key = { appName: 'demo', userId: 'hanako', sessionId: 'chat-1' }

/** A user event with one text part. */
export function textEvent(id: string, fields: Partial<Event> = {}): Event {
  return createEvent({
    id,
    author: 'user',
    timestamp: 1_000,
    content: { role: 'user', parts: [{ text: `text of ${id}` }] },
    ...fields,
  })
}

/** An event that changes state. */
export function deltaEvent(id: string, stateDelta: Record<string, unknown>): Event {
  const event = textEvent(id)
  event.actions.stateDelta = stateDelta
  return event
}

/** Reads a session that must exist. */
export async function readSession(service: BaseSessionService, request = key): Promise<Session> {
  const session = await service.getSession(request)
  if (session === undefined) throw new Error(`no session ${request.sessionId}`)
  return session
}

export function idsOf(session: Session): string[] {
  return session.events.map((event) => event.id)
}

export function lockOf(token: string, leaseMs: number): ChatLock {
  return { worker: `worker of ${token}`, token, leaseMs, background: false }
}

export const QUOTA = { perChat: 16, perPrincipal: 100 }

/** Stores pending approvals, which must be new. */
export async function insert(store: ApprovalStore, ...approvals: Approval[]): Promise<void> {
  for (const approval of approvals) {
    const result = await store.insert(approval, entryOf(approval), QUOTA)
    if (result !== 'inserted') throw new Error(`${approval.id} was not inserted: ${result}`)
  }
}

export async function ids(approvals: Promise<Approval[]>): Promise<string[]> {
  return (await approvals).map(({ id }) => id)
}

export function numbered(count: number, fields: Partial<Approval> = {}): Approval[] {
  return Array.from({ length: count }, (_, number) =>
    askedFor({ id: `a-${number}`, toolCallId: `call-${number}`, ...fields }),
  )
}
