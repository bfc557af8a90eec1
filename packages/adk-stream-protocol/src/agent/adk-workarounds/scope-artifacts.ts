import type { BaseArtifactService, InvocationContext, Session } from '@google/adk'

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
