import * as adk from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'

import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { openArtifacts } from '../../src/dev/page/dev-artifacts.ts'

const keyOf = (userId: string) => ({ appName: 'app', userId, sessionId: 'chat-1' })

test('[DV1672] `dev` stores artifacts for every id of a person, each apart from the others', async () => {
  adk.setLogLevel(adk.LogLevel.ERROR)
  onTestFinished(() => adk.setLogLevel(adk.LogLevel.INFO))
  await using folder = await temporaryDirectory()
  const service = openArtifacts(adk, folder.path)
  const ids = ['alice', 'Alice', 'auth0|a', 'auth0|b', '..', '@x', 'a/b', 'é'.repeat(200)]
  for (const id of ids) {
    await service.saveArtifact({ ...keyOf(id), filename: 'a.txt', artifact: { text: id } })
    await service.saveArtifact({ ...keyOf(id), filename: 'user:b.txt', artifact: { text: id } })
  }
  for (const id of ids) {
    expect(await service.listArtifactKeys(keyOf(id))).toEqual(['a.txt', 'user:b.txt'])
    expect(await service.listVersions({ ...keyOf(id), filename: 'a.txt' })).toEqual([0])
    expect(await service.loadArtifact({ ...keyOf(id), filename: 'user:b.txt' })).toEqual({
      text: id,
    })
  }
})
