import { expect, test } from 'vitest'

import { startEmulator } from '../src/index.ts'
import { calls, connect, MODEL, post, rejection, results, user } from './support/rest-client.ts'

test('[EM28] a body that is not a JSON object is rejected', async () => {
  await using emulator = await startEmulator()
  expect(await rejection(emulator, '{"contents": [')).toMatch(/^Invalid JSON payload received\. /)
  expect(await rejection(emulator, '5')).toBe(
    'Invalid JSON payload received. Root element must be a message.',
  )
  expect(await rejection(emulator, '')).toBe(
    '* GenerateContentRequest.contents: contents is not specified\n',
  )
})

test('[EM29] an unknown field is rejected with its name and path', async () => {
  await using emulator = await startEmulator()
  expect(await rejection(emulator, { contents: [user('Hi')], messages: [] })).toBe(
    'Invalid JSON payload received. Unknown name "messages": Cannot find field.',
  )
  const body = { contents: [{ rolle: 'user', parts: [{ text: 'Hi', txet: 'Hi' }] }] }
  expect(await rejection(emulator, body)).toBe(
    'Invalid JSON payload received. Unknown name "rolle" at \'contents[0]\': Cannot find field.\nInvalid JSON payload received. Unknown name "txet" at \'contents[0].parts[0]\': Cannot find field.',
  )
  const { text } = await post(emulator, 'generateContent', body)
  expect(JSON.parse(text)).toMatchObject({
    error: {
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          fieldViolations: [{ field: 'contents[0]' }, { field: 'contents[0].parts[0]' }],
        },
      ],
    },
  })
})

test('[EM30] a value of the wrong type is rejected with its path', async () => {
  await using emulator = await startEmulator()
  expect(await rejection(emulator, { contents: [{ parts: [{ text: 5 }] }] })).toBe(
    "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
  )
  expect(
    await rejection(emulator, {
      contents: [user('Hi')],
      toolConfig: { functionCallingConfig: { mode: 'SOMETIMES' } },
    }),
  ).toBe('Invalid value at \'tool_config.function_calling_config.mode\', "SOMETIMES"')
})

test('[EM31] a body over 20 MiB is rejected', async () => {
  await using emulator = await startEmulator()
  const request = connect(emulator).models.generateContent({
    model: MODEL,
    contents: [{ inlineData: { mimeType: 'image/png', data: 'A'.repeat(21 * 1024 * 1024) } }],
  })
  await expect(request).rejects.toThrow('Request payload size exceeds the limit: 20971520 bytes.')
})

test('[EM32] roles other than user, model and function are rejected', async () => {
  await using emulator = await startEmulator()
  const { models } = connect(emulator)
  const contents = [{ role: 'assistant', parts: [{ text: 'Hi' }] }]
  await expect(models.generateContent({ model: MODEL, contents })).rejects.toThrow(
    'Please use a valid role: user, model.',
  )
  const asFunction = [user('[[call a]]'), calls('a'), { ...results('a'), role: 'function' }]
  expect((await models.generateContent({ model: MODEL, contents: asFunction })).text).toBe(
    'a -> {"ok":true}',
  )
})

test('[EM33] empty contents, parts and data are rejected', async () => {
  await using emulator = await startEmulator()
  expect(await rejection(emulator, { contents: [] })).toBe(
    '* GenerateContentRequest.contents: contents is not specified\n',
  )
  expect(await rejection(emulator, { contents: [user('Hi'), { role: 'model', parts: [] }] })).toBe(
    '* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n',
  )
  expect(await rejection(emulator, { contents: [{ parts: [{}] }] })).toBe(
    "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field\n",
  )
  const nameless = [user('Hi'), calls('a'), { parts: [{ functionResponse: { response: {} } }] }]
  expect(await rejection(emulator, { contents: nameless })).toBe(
    '* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n',
  )
  await expect(
    connect(emulator).models.countTokens({ model: MODEL, contents: [{ role: 'user', parts: [] }] }),
  ).rejects.toThrow('* CountTokensRequest.contents[0].parts: contents.parts must not be empty.')
})

test.each([
  [
    'one of two calls has no response',
    [user('Hi'), calls('a', 'b'), results('a')],
    'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
  ],
  [
    'a call is followed by a message',
    [user('Hi'), calls('a'), user('Never mind')],
    'Please ensure that function call turn is followed by a function response turn.',
  ],
  [
    'a call has no response',
    [user('Hi'), calls('a')],
    'Please ensure that function call turn is followed by a function response turn.',
  ],
  [
    'a response has no call',
    [user('Hi'), results('a')],
    'Please ensure that function response turn comes immediately after a function call turn.',
  ],
  [
    'a response follows a user message',
    [user('Hi'), calls('a'), results('a'), user('And?'), results('a')],
    'Please ensure that function response turn comes immediately after a function call turn.',
  ],
  [
    'a call comes first',
    [calls('a'), results('a')],
    'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
  ],
  [
    'a turn has a call and a response',
    [user('Hi'), { role: 'model', parts: [...calls('a').parts, ...results('a').parts] }],
    'Please ensure that function call turn contains at least one function_call part which can not be mixed with function_response parts.',
  ],
  [
    'the last turn is text of the model',
    [user('Hi'), { role: 'model', parts: [{ text: 'Hello' }] }],
    'Please ensure that multiturn requests end with a user role or a function response.',
  ],
])('[EM34] rejects a conversation in which %s', async (_, contents, message) => {
  await using emulator = await startEmulator()
  const { models } = connect(emulator)
  await expect(models.generateContent({ model: MODEL, contents })).rejects.toThrow(message)
})

test('[EM34] calls may follow text of the model', async () => {
  await using emulator = await startEmulator()
  const contents = [
    user('[[say a]]'),
    { role: 'model', parts: [{ text: 'Let me look.' }] },
    calls('a', 'b'),
    results('a', 'b'),
    calls('c'),
    results('c'),
  ]
  const response = await connect(emulator).models.generateContent({ model: MODEL, contents })
  expect(response.text).toBe('c -> {"ok":true}')
})

test('[EM35] function declarations must have valid, unique names', async () => {
  await using emulator = await startEmulator()
  const declare = (...names: readonly string[]) =>
    connect(emulator).models.generateContent({
      model: MODEL,
      contents: '[[say fine]]',
      config: { tools: [{ functionDeclarations: names.map((name) => ({ name })) }] },
    })
  await expect(declare('ok', 'not ok', '1st')).rejects.toThrow(
    /function_declarations\[1\]\.name: Invalid function name\..*function_declarations\[2\]\.name: Invalid function name\./s,
  )
  await expect(declare('x'.repeat(65))).rejects.toThrow('with a maximum length of 64.')
  await expect(declare('a', 'b', 'a')).rejects.toThrow('Duplicate function declaration found: a')
  expect((await declare('a', 'ns:b.c-d', '_e')).text).toBe('fine')
})

test('[EM35] the calling config must match the declarations', async () => {
  await using emulator = await startEmulator()
  const tools = [{ functionDeclarations: [{ name: 'a' }] }]
  const rejectConfig = (functionCallingConfig: object, declared: object[] = tools) =>
    rejection(emulator, {
      contents: [user('Hi')],
      tools: declared,
      toolConfig: { functionCallingConfig },
    })
  expect(await rejectConfig({ mode: 'ANY' }, [])).toBe(
    'Function calling config is set without function_declarations.',
  )
  expect(await rejectConfig({ mode: 'AUTO', allowedFunctionNames: ['a'] })).toBe(
    '`allowed_function_names` should be set only when function calling mode is ANY.',
  )
  expect(await rejectConfig({ mode: 'ANY', allowedFunctionNames: ['b'] })).toContain(
    'b is not declared',
  )
})
