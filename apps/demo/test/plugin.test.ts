import { expect, test } from 'vitest'

import { describeCall } from '../src/page/describe-call.ts'
import { volumeOf } from '../src/page/music/music.ts'

test('[DM69] music is quieter during speech, and silent when it is muted', () => {
  const loud = volumeOf({ muted: false, duckedTo: 1 })
  expect(volumeOf({ muted: false, duckedTo: 0.2 })).toBeCloseTo(loud * 0.2)
  expect(volumeOf({ muted: true, duckedTo: 1 })).toBe(0)
  expect(volumeOf({ muted: false, duckedTo: 7 })).toBe(loud)
})

test.each([
  ['pending', 'Send $40.00 to Bob', 'Bobに40.00ドルを送金'],
  ['succeeded', 'Sent $40.00 to Bob', 'Bobに40.00ドルを送金しました'],
  ['failed', 'Not sent: $40.00 to Bob', '未送金：Bobに40.00ドル'],
  ['denied', 'Not sent: $40.00 to Bob', '未送金：Bobに40.00ドル'],
  ['expired', 'Not sent: $40.00 to Bob', '未送金：Bobに40.00ドル'],
  ['cancelled', 'Not sent: $40.00 to Bob', '未送金：Bobに40.00ドル'],
])('[DM34] the headline of a payment says what happened: %s', (phase, english, japanese) => {
  const input = { amount: 40, recipient: 'Bob', currency: 'USD' }
  const headlines = (['en', 'ja'] as const).map((language) =>
    describeCall({ toolName: 'process_payment', input, phase, language }),
  )
  expect(headlines).toEqual([english, japanese])
})
