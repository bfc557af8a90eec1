import { expect, test, vi } from 'vitest'

import { Office } from '../approvals/support/office.ts'
import { joinLive, openLiveOffice } from './support/live-office.ts'

test.each([
  ['live', () => openLiveOffice()],
  ['turn by turn', () => Office.open({ live: undefined as never, disconnectGraceMs: 60_000 })],
])(
  '[WS24] %s, who said goodbye reads no more: another page stops the answer',
  async (_, openOffice) => {
    await using office = await openOffice()
    await using first = await joinLive(office)
    await using second = await joinLive(office)
    first.say('[[say One.]][[wait never]]')
    await first.untilText('One.')
    second.resume('r2')
    await second.untilText('One.', 'r2')
    first.socket.close(1000)
    // It does not read the server's answer to that, as a page does that was put to sleep: the connection stays.
    first.socket.pause()
    await second.sync()
    second.send({ type: 'abort', requestId: 'r2' })
    // Had the first still counted, the answer would go on for its time of grace.
    await vi.waitFor(async () => {
      const messages = await office.page().messages()
      expect(messages.at(-1)).toMatchObject({ metadata: { stopped: true } })
    })
    first.socket.resume()
    expect(await first.closed).toBe(1000)
  },
)
