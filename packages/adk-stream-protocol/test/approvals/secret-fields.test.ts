import type { ElicitRequestFormParams } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, test } from 'vitest'

import { readElicitation } from '../../src/modules/mcp/elicitation-request.ts'
import { isSecretField } from '../../src/calls/secret-fields.ts'

interface Form {
  readonly name?: string
  readonly field?: object
  readonly message?: string
}

function isRefused({ name = 'value', field, message = 'One more thing.' }: Form): boolean {
  const properties = { [name]: { type: 'string', ...field } }
  const params = { mode: 'form', message, requestedSchema: { type: 'object', properties } }
  return 'fault' in readElicitation(params as ElicitRequestFormParams)
}

const WORDS: Readonly<Record<string, readonly string[]>> = {
  English: ['Password', 'Passcode', 'PIN code', 'Card number', 'CVC', 'Access token', 'API key'],
  German: ['Passwort', 'Kennwort', 'Geheimzahl', 'Kartennummer', 'Prüfziffer', 'API-Schlüssel'],
  French: ['Mot de passe', 'Code secret', 'Numéro de carte', 'Clé API', 'Jeton d’accès'],
  Spanish: ['Contraseña', 'Clave secreta', 'Número de tarjeta', 'Código de seguridad'],
  Italian: ['Parola d’ordine', 'Codice segreto', 'Numero della carta', 'Chiave API'],
  Portuguese: ['Senha', 'Palavra-passe', 'Número do cartão', 'Código de segurança', 'Chave de API'],
  Dutch: ['Wachtwoord', 'Pincode', 'Kaartnummer', 'Geheime sleutel', 'API-sleutel'],
  Japanese: ['パスワード', 'ﾊﾟｽﾜｰﾄﾞ', '暗証番号', 'カード番号', 'トークン', 'APIキー', '認証コード'],
  Chinese: ['密码', '密碼', '口令', '卡号', '令牌', 'API 密钥', '验证码', '安全码'],
  Korean: ['비밀번호', '비밀 번호', '카드 번호', '보안 코드', '토큰', 'API 키', '인증번호'],
}

/** What a server writes to ask for a word in another way. */
const DISGUISES: readonly [name: string, disguise: (word: string) => string][] = [
  ['upper case', (word) => word.toUpperCase()],
  ['zero-width characters', (word) => Array.from(word).join('\u{200B}')],
  ['soft hyphens', (word) => Array.from(word).join('\u{AD}')],
  ['a direction mark', (word) => `\u{202E}${word}\u{2066}`],
  ['full width', (word) => word.replaceAll(/[!-~]/g, toFullWidth)],
  ['separate accents', (word) => word.normalize('NFD')],
  ['more words', (word) => `★ ${word} ★`],
]

function toFullWidth(letter: string): string {
  return String.fromCodePoint((letter.codePointAt(0) ?? 0) + 0xfe_e0)
}

describe.each(Object.entries(WORDS))('%s', (_language, words) => {
  test.each(words)('[AP1061] nobody is asked for “%s”', (word) => {
    const refused = {
      name: isRefused({ name: word }),
      title: isRefused({ field: { title: word } }),
      description: isRefused({ field: { description: word } }),
      message: isRefused({ message: word }),
    }
    expect(refused).toEqual({ name: true, title: true, description: true, message: true })
    const passed = DISGUISES.filter(
      ([, disguise]) =>
        !isRefused({ field: { title: disguise(word) } }) ||
        !isRefused({ field: { description: disguise(word) } }),
    )
    expect(passed.map(([name]) => name)).toEqual([])
  })
})

test.each([
  'раsswоrd',
  'ρassword',
  // Greek and Cyrillic capitals. Their small letters look different.
  'ΡΙΝ',
  'ΤΟΚΕΝ',
  'ΑΡΙ ΚΕΥ',
  'СVС',
  'p4ssw0rd',
  'P@$$word',
  'p a s s w o r d',
  'ᴘᴀssᴡᴏʀᴅ',
  '𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝',
  'userPassword',
  'db_password',
  'Benutzerpasswort',
  'loginpassword',
  'PIN',
  'secret',
  'clientSecret',
  'clave',
  'GITHUB_TOKEN',
  'credential',
])('[AP1061] nobody is asked for the field %s', (name) => {
  expect(isRefused({ name })).toBe(true)
  expect(isRefused({ field: { title: name } })).toBe(true)
})

test.each<Form>([
  { field: { description: 'Please enter your PIN to continue' } },
  { field: { description: 'The password of the account' } },
  { field: { description: 'Geben Sie Ihr Kennwort ein' } },
  { field: { description: 'ログイン用のパスワードを入力してください' } },
  { field: { type: 'integer', description: 'The four digits of your card’s PIN code' } },
  { field: { format: 'Password' } },
  { message: 'To go on, enter the password of your account.' },
  { message: 'What is your password?' },
  { message: 'Please paste an API key here:' },
  { message: 'Bitte geben Sie Ihr Passwort ein.' },
  { message: 'Saisissez votre mot de passe' },
  { message: '请输入您的密码' },
  { message: '비밀번호를 입력하세요' },
  { message: 'Do not worry: enter your password.' },
])('[AP1061] nobody is asked %j', (form) => {
  expect(isRefused(form)).toBe(true)
})

test.each<Form>([
  { name: 'maxTokens' },
  { name: 'compass' },
  { name: 'opinion' },
  { name: 'pinned' },
  { name: 'keyword' },
  { name: 'secretary' },
  { name: 'city', field: { description: 'Pin a place on the map' } },
  { name: 'count', field: { description: 'How many tokens the reply may have' } },
  { name: 'count', field: { title: '最大トークン数' } },
  { name: 'coin', field: { title: '암호화폐' } },
  { name: 'user', field: { description: 'The user whose password is reset' } },
  { field: { description: 'A number (do not enter your password or PIN code)' } },
  { field: { type: 'boolean', description: 'I have saved my password' }, message: 'Password' },
  { field: { enum: ['yes', 'no'] }, message: 'Shall I reset your password?' },
  { message: 'Which user forgot the password?' },
  { message: 'Enter the name of the user who will get another password.' },
])('[AP1061] a person is asked %j', (form) => {
  expect(isRefused(form)).toBe(false)
})

test('[AP1061] a field without a schema is judged by its name', () => {
  expect(isSecretField('password', undefined)).toBe(true)
  expect(isSecretField('city', undefined)).toBe(false)
})
