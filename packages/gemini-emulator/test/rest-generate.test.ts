import { FunctionCallingConfigMode } from '@google/genai'
import { expect, test } from 'vitest'

import { scriptResponder, startEmulator } from '../src/index.ts'
import {
  ask,
  connect,
  MODEL,
  partsOf,
  post,
  results,
  stream,
  textOf,
  user,
} from './support/rest-client.ts'

test('[EM1] generateContent returns one complete candidate', async () => {
  await using emulator = await startEmulator()
  const response = await ask(emulator, '[[say Hello, Hanako.]]')
  expect(response.text).toBe('Hello, Hanako.')
  expect(response.candidates).toEqual([
    {
      content: { role: 'model', parts: [{ text: 'Hello, Hanako.' }] },
      finishReason: 'STOP',
      index: 0,
    },
  ])
  expect(response.modelVersion).toBe(MODEL)
  expect(response.responseId).toMatch(/./)
})

test('[EM190] an idle connection stays open for four minutes', async () => {
  await using emulator = await startEmulator()
  const response = await fetch(emulator.baseUrl)
  await response.text()
  expect(response.headers.get('keep-alive')).toBe('timeout=240')
})

test('[EM2] streamGenerateContent sends the text in pieces, with the finish reason on the last', async () => {
  await using emulator = await startEmulator()
  const chunks = await stream(emulator, '[[say One two  three.]]')
  expect(partsOf(chunks).map((part) => part.text)).toEqual(['One ', 'two  ', 'three.'])
  expect(chunks.map((chunk) => chunk.candidates?.[0]?.finishReason)).toEqual([
    undefined,
    undefined,
    'STOP',
  ])
  expect(new Set(chunks.map((chunk) => chunk.responseId)).size).toBe(1)
})

test('[EM2] `pieces` sets the pieces', async () => {
  await using emulator = await startEmulator({
    respond: () => [{ type: 'say', text: 'abc', pieces: ['a', 'bc'] }],
  })
  expect(partsOf(await stream(emulator, 'go')).map((part) => part.text)).toEqual(['a', 'bc'])
})

test('[EM6] adjacent calls are sent together, a separate one alone', async () => {
  await using emulator = await startEmulator()
  const script = '[[call a {"n": 1}]] [[call b]] [[call-separate c {"n": 3}]]'
  const chunks = await stream(emulator, script)
  expect(
    chunks.map((chunk) => chunk.functionCalls?.map(({ name, args }) => ({ name, args }))),
  ).toEqual([
    [
      { name: 'a', args: { n: 1 } },
      { name: 'b', args: {} },
    ],
    [{ name: 'c', args: { n: 3 } }],
  ])
  expect((await ask(emulator, script)).functionCalls).toHaveLength(3)
})

test('[EM7] thoughts are sent only on request, and always counted', async () => {
  await using emulator = await startEmulator()
  const contents = '[[think Hmm, well.]] [[say Yes.]]'
  const withoutThoughts = await ask(emulator, contents)
  expect(withoutThoughts.candidates?.[0]?.content?.parts).toEqual([{ text: 'Yes.' }])
  const withThoughts = await connect(emulator).models.generateContent({
    model: MODEL,
    contents,
    config: { thinkingConfig: { includeThoughts: true } },
  })
  expect(withThoughts.candidates?.[0]?.content?.parts).toEqual([
    { text: 'Hmm, well.', thought: true },
    { text: 'Yes.' },
  ])
  const thoughtTokens = withoutThoughts.usageMetadata?.thoughtsTokenCount
  expect(thoughtTokens).toBeGreaterThan(0)
  expect(withThoughts.usageMetadata?.thoughtsTokenCount).toBe(thoughtTokens)
})

test('[EM8] Gemini 3 gives every call an id, and the first one a thought signature', async () => {
  await using emulator = await startEmulator()
  const parts = partsOf(await stream(emulator, '[[call a]] [[call b]]', 'gemini-3-pro-preview'))
  expect(parts.map((part) => typeof part.functionCall?.id)).toEqual(['string', 'string'])
  expect(parts.map((part) => typeof part.thoughtSignature)).toEqual(['string', 'undefined'])
  const separate = '[[call a]] [[call-separate b]]'
  const inChunks = partsOf(await stream(emulator, separate, 'gemini-3-pro-preview'))
  expect(
    inChunks.filter(({ functionCall }) => functionCall).map((part) => typeof part.thoughtSignature),
  ).toEqual(['string', 'undefined'])
  const older = partsOf(await stream(emulator, '[[call a]]', 'gemini-2.5-pro'))
  expect(older).toEqual([{ functionCall: { name: 'a', args: {} } }])
})

test('[EM8] Gemini 3 rejects a turn that lacks the signature of its call', async () => {
  await using emulator = await startEmulator()
  const { models } = connect(emulator)
  const model = 'gemini-3-pro-preview'
  const first = await models.generateContent({ model, contents: '[[call a]]' })
  const signed = first.candidates?.[0]?.content?.parts ?? []
  await expect(
    models.generateContent({ model, contents: afterCall(signed) }),
  ).resolves.toMatchObject({ text: 'a -> {"ok":true}' })
  const unsigned = signed.map(({ functionCall }) => ({ functionCall }))
  await expect(models.generateContent({ model, contents: afterCall(unsigned) })).rejects.toThrow(
    'Function call is missing a thought_signature in functionCall parts.',
  )
})

test('[EM9] an image is sent as inlineData', async () => {
  await using emulator = await startEmulator()
  const [part] = partsOf(await stream(emulator, '[[image red]]'))
  expect(part?.inlineData?.mimeType).toBe('image/png')
  const png = Buffer.from(part?.inlineData?.data ?? '', 'base64')
  expect(png.subarray(1, 4).toString()).toBe('PNG')
})

test('[EM10] executed code is sent with its result', async () => {
  await using emulator = await startEmulator()
  expect(partsOf(await stream(emulator, '[[code print(6*7) => 42]]'))).toEqual([
    { executableCode: { language: 'PYTHON', code: 'print(6*7)' } },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '42' } },
  ])
})

test('[EM11] the last chunk of a grounded reply has its sources', async () => {
  await using emulator = await startEmulator()
  const chunks = await stream(
    emulator,
    '[[ground https://example.com/a First]] [[ground https://example.com/b]] [[say 東京は 晴れ。]]',
  )
  expect(chunks.slice(0, -1).every((chunk) => !chunk.candidates?.[0]?.groundingMetadata)).toBe(true)
  const grounding = chunks.at(-1)?.candidates?.[0]?.groundingMetadata
  expect(grounding?.groundingChunks).toEqual([
    { web: { uri: 'https://example.com/a', title: 'First' } },
    { web: { uri: 'https://example.com/b', title: 'example.com' } },
  ])
  expect(grounding?.groundingSupports?.[0]).toMatchObject({
    segment: { endIndex: Buffer.byteLength('東京は 晴れ。') },
    groundingChunkIndices: [0, 1],
  })
})

test('[EM12] every chunk has the usage so far, and its total is the sum', async () => {
  await using emulator = await startEmulator()
  const chunks = await stream(emulator, '[[think Well.]] [[say one two three four five]]')
  const usages = chunks.map((chunk) => chunk.usageMetadata ?? {})
  const candidateTokens = usages.map((usage) => usage.candidatesTokenCount ?? 0)
  expect(candidateTokens.toSorted((a, b) => a - b)).toEqual(candidateTokens)
  expect(candidateTokens.at(-1)).toBeGreaterThan(candidateTokens[0] ?? 0)
  for (const usage of usages) {
    expect(usage.promptTokenCount).toBeGreaterThan(0)
    expect(usage.totalTokenCount).toBe(
      (usage.promptTokenCount ?? 0) +
        (usage.candidatesTokenCount ?? 0) +
        (usage.thoughtsTokenCount ?? 0),
    )
  }
})

test('[EM13] cached content is counted', async () => {
  await using emulator = await startEmulator()
  const { usageMetadata } = await connect(emulator).models.generateContent({
    model: MODEL,
    contents: '[[say Hello]]',
    config: { cachedContent: 'cachedContents/abc' },
  })
  expect(usageMetadata?.cachedContentTokenCount).toBeGreaterThan(0)
  expect(usageMetadata?.promptTokenCount).toBeGreaterThan(
    usageMetadata?.cachedContentTokenCount ?? 0,
  )
})

test('[EM14] a finish reason other than STOP ends the response', async () => {
  await using emulator = await startEmulator()
  const truncated = await stream(
    emulator,
    '[[say A long]] [[finish MAX_TOKENS]] [[say never said]]',
  )
  expect(textOf(truncated)).toBe('A long')
  expect(truncated.at(-1)?.candidates?.[0]?.finishReason).toBe('MAX_TOKENS')
})

test('[EM14] a candidate that was stopped for its content has safety ratings and no content', async () => {
  await using emulator = await startEmulator()
  const chunks = await stream(emulator, '[[say So]] [[finish SAFETY]]')
  const blocked = chunks.at(-1)?.candidates?.[0]
  expect(blocked?.finishReason).toBe('SAFETY')
  expect(blocked?.content).toBeUndefined()
  expect(blocked?.safetyRatings).toContainEqual(expect.objectContaining({ blocked: true }))
})

test('[EM15] a blocked prompt gets feedback and no candidate', async () => {
  await using emulator = await startEmulator()
  const response = await ask(emulator, '[[block PROHIBITED_CONTENT]]')
  expect(response.promptFeedback?.blockReason).toBe('PROHIBITED_CONTENT')
  expect(response.candidates).toBeUndefined()
  expect(response.usageMetadata?.promptTokenCount).toBeGreaterThan(0)
  const uncounted = await ask(emulator, '[[block SAFETY no-usage]]')
  expect(uncounted.promptFeedback?.blockReason).toBe('SAFETY')
  expect(uncounted.usageMetadata).toBeUndefined()
})

test('[EM16] countTokens counts four English letters, or one Japanese character, as one token', async () => {
  await using emulator = await startEmulator()
  const { models } = connect(emulator)
  const count = async (contents: string) =>
    (await models.countTokens({ model: MODEL, contents })).totalTokens
  expect(await count('abcdefgh')).toBe(2)
  expect(await count('東京の天気は')).toBe(6)
})

test('[EM17] models are listed in pages, and one model can be read', async () => {
  await using emulator = await startEmulator({
    models: ['gemini-a', 'gemini-b', 'gemini-c'],
    respond: scriptResponder,
  })
  const { models } = connect(emulator)
  const names: (string | undefined)[] = []
  for await (const model of await models.list({ config: { pageSize: 2 } })) names.push(model.name)
  expect(names).toEqual(['models/gemini-a', 'models/gemini-b', 'models/gemini-c'])
  expect(emulator.requests).toHaveLength(2)
  expect((await models.get({ model: 'gemini-b' })).name).toBe('models/gemini-b')
  await expect(models.get({ model: 'gemini-z' })).rejects.toMatchObject({ status: 404 })
})

function afterCall(parts: object[]) {
  return [user('[[call a]]'), { role: 'model', parts }, results('a')]
}

const weather = {
  name: 'weather',
  parametersJsonSchema: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' }, unit: { enum: ['C', 'F'] } },
    required: ['city', 'days', 'unit'],
  },
}

test('[EM18] with calling mode NONE no function is called', async () => {
  await using emulator = await startEmulator()
  const response = await connect(emulator).models.generateContent({
    model: MODEL,
    contents: '[[say No.]] [[call weather {}]]',
    config: {
      tools: [{ functionDeclarations: [weather] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.NONE } },
    },
  })
  expect(response.functionCalls).toBeUndefined()
  expect(response.text).toBe('No.')
})

test('[EM19] with calling mode ANY an allowed function is called', async () => {
  await using emulator = await startEmulator()
  const generate = (contents: string, allowedFunctionNames?: string[]) =>
    connect(emulator).models.generateContent({
      model: MODEL,
      contents,
      config: {
        tools: [{ functionDeclarations: [{ name: 'other' }, weather] }],
        toolConfig: {
          functionCallingConfig: {
            mode: FunctionCallingConfigMode.ANY,
            ...(allowedFunctionNames && { allowedFunctionNames }),
          },
        },
      },
    })
  expect((await generate('[[say Just talk]]', ['weather'])).functionCalls).toEqual([
    { name: 'weather', args: { city: '', days: 0, unit: 'C' } },
  ])
  expect((await generate('[[call other]]', ['weather'])).functionCalls?.[0]?.name).toBe('weather')
  expect((await generate('[[call weather {"city": "東京"}]]')).functionCalls).toEqual([
    { name: 'weather', args: { city: '東京' } },
  ])
})

test('[EM36] snake_case and a single message in place of a list are accepted', async () => {
  await using emulator = await startEmulator({
    respond: ({ systemInstruction, includeThoughts, functions }) => [
      {
        type: 'say',
        text: JSON.stringify({ systemInstruction, includeThoughts, declared: functions[0] }),
      },
    ],
  })
  const { text } = await post(emulator, 'generateContent', {
    system_instruction: { parts: { text: 'Be brief.' } },
    contents: { parts: { text: 'Hi' } },
    tools: { function_declarations: { name: 'look_up', parameters: { snake_key: 1 } } },
    generation_config: { thinking_config: { include_thoughts: true } },
  })
  expect(JSON.parse(text)).toMatchObject({
    candidates: [
      {
        content: {
          parts: [
            {
              text: '{"systemInstruction":"Be brief.","includeThoughts":true,"declared":{"name":"look_up","parameters":{"snake_key":1}}}',
            },
          ],
        },
      },
    ],
  })
})
