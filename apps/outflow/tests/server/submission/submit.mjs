// Submits as any Node program would.
// usage: submit.mjs PATH_OF_NODEMAILER LETTER.json

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const nodemailer = createRequire(import.meta.url)(process.argv[2]);
const letter = JSON.parse(readFileSync(process.argv[3], "utf8"));
const transport = nodemailer.createTransport({
  host: "localhost",
  port: Number(letter.port),
  requireTLS: true,
  tls: { ca: readFileSync(letter.ca_file) },
  auth: letter.token ? { user: "any", pass: letter.token } : undefined,
});
try {
  const info = await transport.sendMail({
    from: { name: "Shop", address: letter.from },
    to: letter.to,
    subject: letter.subject,
    messageId: letter.message_id,
    text: letter.text,
    headers: {
      "X-Outflow-Class": "high",
      "X-Outflow-Tenant": "acme",
      "X-Outflow-Campaign": letter.campaign,
    },
    attachments: [{ filename: "file.bin", path: letter.file }],
  });
  console.log(info.response);
} catch (error) {
  console.log(`responseCode: ${error.responseCode} ${error.message}`);
  process.exitCode = 1;
}
