import type { BaseArtifactService, InvocationContext, Session } from '@google/adk'

/** The artifacts of one session, as ADK's Runner gives them to its tools; ADK 2.0.0 keeps its own version of this to itself. */
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
