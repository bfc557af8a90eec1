import type {
  BaseSessionService,
  Event,
  Session,
  BaseArtifactService,
  InvocationContext,
} from '@google/adk'
import { getFunctionCalls } from '@google/adk'

import type { ChatRef } from '../../shared/chat-ref.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { resolvePolicy } from '../../approvals/policy.ts'
import { ApprovalUnavailableError } from '../call-responses.ts'
import type { ResponseAppender } from '../history/cut-events.ts'
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

/** A session service may have more methods that write than ADK's. */
interface WritingService extends BaseSessionService, Partial<ResponseAppender> {
  rewind?(request: { readonly userId: string; readonly sessionId: string }): Promise<void>
}

/** Calls `onWritten` after each attempt to change the events of a chat. Other runners use sessions of other applications. */
export function observeWrites(
  service: WritingService,
  { appName, onWritten }: { readonly appName: string; readonly onWritten: (chat: ChatRef) => void },
): BaseSessionService {
  const written = ({ appName: name, userId: principalId, id: chatId }: Session): void => {
    if (name === appName) onWritten({ principalId, chatId })
  }
  const appendEvent: WritingService['appendEvent'] = async (request) => {
    if (request.event.partial) return service.appendEvent(request)
    return service.appendEvent(request).finally(() => written(request.session))
  }
  const appendResponse: WritingService['appendResponse'] = async (request, calls) =>
    service.appendResponse?.(request, calls).finally(() => written(request.session)) ?? false
  const rewind: WritingService['rewind'] = async (request) => {
    const { userId: principalId, sessionId: chatId } = request
    await service.rewind?.(request).finally(() => onWritten({ principalId, chatId }))
  }
  return intercept(service, {
    appendEvent,
    ...(service.appendResponse && { appendResponse }),
    ...(service.rewind && { rewind }),
  })
}

/** Returns the session service with other methods in place of some of its own. */
export function intercept<Service extends BaseSessionService>(
  service: Service,
  methods: Partial<WritingService>,
): Service {
  const bound = new Map<string | symbol, unknown>(Object.entries(methods))
  return new Proxy(service, {
    get(target, name) {
      const known = bound.get(name)
      if (known !== undefined) return known
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      // Private fields exist on the service, not on the proxy.
      const method: unknown = value.bind(target)
      bound.set(name, method)
      return method
    },
  })
}

/** Returns the artifact service of one session, as ADK's Runner passes it to tools. ADK 2.0.0 does not export its own version. */
export function scopeArtifacts(
  service: BaseArtifactService,
  { appName, userId, id: sessionId }: Session,
): NonNullable<InvocationContext['artifactService']> {
  const key = { appName, userId, sessionId }
  return {
    saveArtifact: async (request) => service.saveArtifact({ ...key, ...request }),
    loadArtifact: async (request) => service.loadArtifact({ ...key, ...request }),
    listArtifactKeys: async () => service.listArtifactKeys(key),
    deleteArtifact: async (filename) => service.deleteArtifact({ ...key, filename }),
    listVersions: async (filename) => service.listVersions({ ...key, filename }),
    listArtifactVersions: async (filename) => service.listArtifactVersions({ ...key, filename }),
    getArtifactVersion: async (request) => service.getArtifactVersion({ ...key, ...request }),
  }
}
