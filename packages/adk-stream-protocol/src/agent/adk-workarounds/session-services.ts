import type {
  BaseSessionService,
  Session,
  BaseArtifactService,
  InvocationContext,
} from '@google/adk'

import type { ChatRef } from '../../shared/chat-ref.ts'
import type { ResponseAppender } from '../history/cut-events.ts'

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
