import { createHash } from 'node:crypto'
import { pathToFileURL } from 'node:url'

import type { BaseArtifactService, FileArtifactService } from '@google/adk'

/** The part of ADK that stores artifacts. It is imported when the copy of the agent is known. */
interface Adk {
  readonly FileArtifactService: typeof FileArtifactService
}

/** Stores artifacts in a folder. ADK's service rejects most ids of identity providers, such as `auth0|1`: it names a folder after them. */
export function openArtifacts(adk: Adk, folder: string): BaseArtifactService {
  const service = new adk.FileArtifactService(pathToFileURL(folder).href)
  return new Proxy(service, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (request: { readonly userId: string }): unknown =>
        Reflect.apply(method, target, [{ ...request, userId: toFolderName(request.userId) }])
    },
  })
}

/** Returns an id that every file system can have as a folder as it is, and a hash of any other one. */
function toFolderName(id: string): string {
  const isPlain = /^[a-z\d_][a-z\d_.@-]{0,63}$/.test(id)
  return isPlain ? id : `@${createHash('sha256').update(id).digest('hex')}`
}
