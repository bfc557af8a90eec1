import { expect, test } from 'vitest'

import { ChangeBgm, GetLocation } from '../src/agent/tools/browser-tools.ts'

test('[DM132] outputs of clients of the earlier system are accepted, with all their fields', () => {
  expect(ChangeBgm.output.parse({ track: 1, message: 'Playing.' })).toEqual({
    success: true,
    track: 1,
    message: 'Playing.',
  })
  const place = { latitude: 35.7, longitude: 139.7, city: 'Tokyo' }
  expect(GetLocation.output.parse(place)).toEqual(place)
})

test('[DM132] an output without a required field, or with a wrong type, is rejected', () => {
  expect(ChangeBgm.output.safeParse({ message: 'Playing.' }).success).toBe(false)
  expect(GetLocation.output.safeParse({ latitude: 'north', longitude: 0 }).success).toBe(false)
})
