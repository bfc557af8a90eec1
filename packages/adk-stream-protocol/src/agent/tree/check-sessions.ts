import type { BaseSessionService, Event, Session } from '@google/adk'
import { getFunctionCalls } from '@google/adk'

import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { resolvePolicy } from '../../approvals/policy.ts'
import { intercept } from '../adk-workarounds/session-services.ts'
import { ApprovalUnavailableError } from '../call-responses.ts'
import { toStoredEvent } from '../events/input-calls.ts'
import { asksForApproval } from '../history/open-questions.ts'
import { readOriginalCall } from '../tool-call.ts'
import { confineRemoteEvent } from './remote-agents.ts'

interface CheckedSessionsOptions {
  readonly appName: string
  readonly policy: ApprovalPolicy
  readonly onError: (error: unknown) => void
}

/**
 * Returns a session service that checks and timestamps events before it appends them.
 *
 * Timestamps grow with each event of a session, because ADK's DatabaseSessionService orders events by timestamp, and
 * an event may be stored before another one that was created earlier.
 *
 * A session of another application belongs to another runner, such as one that a tool starts by itself. That runner may
 * have no plugin that requests approval. If a call there needs approval, its event is rejected, so that the call does not run.
 */
export function checkSessions<Service extends BaseSessionService>(
  service: Service,
  options: CheckedSessionsOptions,
): Service {
  const appendEvent = async (request: { session: Session; event: Event }): Promise<Event> => {
    const { session, event } = request
    if (session.appName !== options.appName) {
      // Another runner wrote this event, which may have no plugin of ours.
      confineRemoteEvent(event)
      await refuseCallsThatNeedApproval(session, event, options)
    }
    if (!event.partial) setTimestamp(session, event)
    return service.appendEvent({ ...request, event: toStoredEvent(event, session.events) })
  }
  return intercept(service, { appendEvent })
}

function setTimestamp({ events }: Session, event: Event): void {
  const last = events.at(-1)
  if (last && last.id !== event.id && event.timestamp <= last.timestamp)
    event.timestamp = last.timestamp + 1
}

async function refuseCallsThatNeedApproval(
  { appName: agentName, userId: principalId, id: chatId }: Session,
  event: Event,
  { appName, policy, onError }: CheckedSessionsOptions,
): Promise<void> {
  const isConfirmationRequest = asksForApproval(event)
  for (const { name: toolName = '', args = {} } of getFunctionCalls(event)) {
    const call = { chat: { appName, principalId, chatId }, toolName, args }
    const needsApproval =
      isConfirmationRequest ||
      (await resolvePolicy(policy, call, { required: () => false, onError }))
    if (!needsApproval) continue
    const name = isConfirmationRequest ? readOriginalCall(args)?.['name'] : toolName
    const error = new ApprovalUnavailableError(typeof name === 'string' ? name : '', agentName)
    onError(error)
    throw error
  }
}
