--
-- PostgreSQL database dump
--



-- Dumped from database version 15.20 (Debian 15.20-0+deb12u1)
-- Dumped by pg_dump version 15.20 (Debian 15.20-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: oncehook_fixture; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA oncehook_fixture;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: attempt; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.attempt (
    id bigint NOT NULL,
    event bigint NOT NULL,
    attempt integer NOT NULL,
    at bigint NOT NULL,
    duration bigint NOT NULL,
    error_code text NOT NULL,
    error text NOT NULL
);


--
-- Name: attempt_id_seq; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE oncehook_fixture.attempt ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oncehook_fixture.attempt_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: audit; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.audit (
    id bigint NOT NULL,
    at bigint NOT NULL,
    by text NOT NULL,
    act text NOT NULL,
    detail text NOT NULL
);


--
-- Name: audit_id_seq; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE oncehook_fixture.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oncehook_fixture.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: body; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.body (
    event bigint NOT NULL,
    raw bytea NOT NULL
);


--
-- Name: client; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.client (
    id integer NOT NULL,
    name bytea NOT NULL
);


--
-- Name: client_id_seq; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE oncehook_fixture.client ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oncehook_fixture.client_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: conflict; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.conflict (
    event bigint NOT NULL,
    digest bytea NOT NULL,
    signed bigint NOT NULL,
    at bigint NOT NULL,
    raw bytea NOT NULL
);


--
-- Name: event; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.event (
    id bigint NOT NULL,
    lane bigint NOT NULL,
    seq bigint NOT NULL,
    kind integer NOT NULL,
    state smallint NOT NULL,
    outcome smallint,
    keep smallint,
    finished bigint,
    attempts integer NOT NULL,
    started bigint,
    late boolean NOT NULL,
    forced boolean NOT NULL,
    duplicates integer NOT NULL,
    conflict boolean NOT NULL,
    gap_wait bigint NOT NULL,
    occurred bigint NOT NULL,
    signed bigint NOT NULL,
    accepted bigint NOT NULL,
    error_code text,
    error text,
    digest bytea NOT NULL,
    trace text,
    has_body boolean NOT NULL
)
WITH (fillfactor='80');


--
-- Name: event_id; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

CREATE SEQUENCE oncehook_fixture.event_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: gap; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.gap (
    lane bigint NOT NULL,
    hi bigint NOT NULL,
    lo bigint NOT NULL,
    skipped bigint NOT NULL,
    filled bigint
);


--
-- Name: instance; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.instance (
    id integer NOT NULL,
    name text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    pid_started text NOT NULL,
    opened bigint NOT NULL,
    seen bigint,
    keyring text,
    counters jsonb
);


--
-- Name: instance_id_seq; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE oncehook_fixture.instance ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oncehook_fixture.instance_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: kind; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.kind (
    id integer NOT NULL,
    name bytea NOT NULL
);


--
-- Name: kind_id_seq; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE oncehook_fixture.kind ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oncehook_fixture.kind_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: lane; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.lane (
    id bigint NOT NULL,
    client integer NOT NULL,
    tag smallint NOT NULL,
    message bytea NOT NULL,
    status smallint DEFAULT 0 NOT NULL,
    ready_at bigint,
    cursor bigint,
    gap_since bigint,
    epoch integer DEFAULT 0 NOT NULL,
    holder integer,
    leased bigint,
    peer bytea,
    reference bytea,
    leased_epoch integer,
    leased_attempts integer,
    leased_started bigint
)
WITH (fillfactor='70');


--
-- Name: lane_id; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

CREATE SEQUENCE oncehook_fixture.lane_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: meta; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.meta (
    key text NOT NULL,
    value text NOT NULL
);


--
-- Name: quarantine; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.quarantine (
    id bigint NOT NULL,
    digest bytea NOT NULL,
    reason text NOT NULL,
    slot text NOT NULL,
    scope text NOT NULL,
    state smallint DEFAULT 0 NOT NULL,
    replayed_as bigint,
    signed bigint NOT NULL,
    accepted bigint NOT NULL,
    bytes integer NOT NULL,
    trace text,
    raw bytea,
    signer text
);


--
-- Name: quarantine_id_seq; Type: SEQUENCE; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE oncehook_fixture.quarantine ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME oncehook_fixture.quarantine_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: secret; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.secret (
    kind text NOT NULL,
    revision bigint NOT NULL,
    sealed bytea NOT NULL,
    changed bigint NOT NULL
);


--
-- Name: tally; Type: TABLE; Schema: oncehook_fixture; Owner: -
--

CREATE TABLE oncehook_fixture.tally (
    instance integer NOT NULL,
    slot smallint DEFAULT 0 NOT NULL,
    pending bigint DEFAULT 0 NOT NULL,
    dead bigint DEFAULT 0 NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    held_bytes bigint DEFAULT 0 NOT NULL,
    blocked bigint DEFAULT 0 NOT NULL,
    accepted bigint DEFAULT 0 NOT NULL,
    duplicates bigint DEFAULT 0 NOT NULL,
    conflicts bigint DEFAULT 0 NOT NULL,
    late bigint DEFAULT 0 NOT NULL,
    handled bigint DEFAULT 0 NOT NULL,
    unhandled bigint DEFAULT 0 NOT NULL,
    retried bigint DEFAULT 0 NOT NULL,
    dead_lettered bigint DEFAULT 0 NOT NULL,
    discarded bigint DEFAULT 0 NOT NULL,
    gaps_skipped bigint DEFAULT 0 NOT NULL,
    quarantined bigint DEFAULT 0 NOT NULL,
    newest_signed bigint,
    resigned boolean DEFAULT false NOT NULL
)
WITH (fillfactor='50');


--
-- Data for Name: attempt; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.attempt OVERRIDING SYSTEM VALUE VALUES (1, 6, 1, 1795712234240, 0, 'Error', 'The handler has a bug.');


--
-- Data for Name: audit; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--



--
-- Data for Name: body; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.body VALUES (1, '\x7b226576656e7454797065223a226d6573736167652e717565756564222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f68616e646c6564222c2273657175656e6365223a312c2264617461223a7b226d6573736167654964223a226d73675f68616e646c6564222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a22515545554544222c226572726f72223a6e756c6c7d7d');
INSERT INTO oncehook_fixture.body VALUES (2, '\x7b226576656e7454797065223a226d6573736167652e73656e74222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f68616e646c6564222c2273657175656e6365223a322c2264617461223a7b226d6573736167654964223a226d73675f68616e646c6564222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a2273656e74222c226572726f72223a6e756c6c7d7d');
INSERT INTO oncehook_fixture.body VALUES (3, '\x7b226576656e7454797065223a226d6573736167652e64656c6976657279222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f68616e646c6564222c2273657175656e6365223a332c2264617461223a7b226d6573736167654964223a226d73675f68616e646c6564222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a2264656c697665726564222c226572726f72223a6e756c6c2c2270726f76696465724d657373616765526566223a2270726f765f31227d7d');
INSERT INTO oncehook_fixture.body VALUES (5, '\x7b226576656e7454797065223a226d6573736167652e717565756564222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f64656164222c2273657175656e6365223a312c2264617461223a7b226d6573736167654964223a226d73675f64656164222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a22515545554544222c226572726f72223a6e756c6c7d7d');
INSERT INTO oncehook_fixture.body VALUES (6, '\x7b226576656e7454797065223a226d6573736167652e6661696c6564222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f64656164222c2273657175656e6365223a322c2264617461223a7b226d6573736167654964223a226d73675f64656164222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a226661696c6564222c226572726f72223a7b22636f6465223a2250524f56494445525f53454e445f4641494c4544222c226d657373616765223a225468652070726f7669646572207265667573656420746865206d6573736167652e222c2264657461696c73223a7b7d7d7d7d');
INSERT INTO oncehook_fixture.body VALUES (7, '\x7b226576656e7454797065223a226d6573736167652e696e626f756e64222c22646972656374696f6e223a22696e626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c2264617461223a7b226d6573736167654964223a226d73675f756e68616e646c6564222c22636f6e766572736174696f6e4964223a22636f6e765f31222c226e756d6265724964223a226e756d5f31222c2266726f6d223a222b3134313535353530313031222c22746f223a222b3134313535353530313030222c22626f6479223a2248656c6c6f222c226d65646961223a5b5d2c2274696d657374616d70223a313739353731323233343033307d7d');
INSERT INTO oncehook_fixture.body VALUES (8, '\x7b226576656e7454797065223a226d6573736167652e72656164222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313736303030303030303030302c22617069436c69656e744964223a226170635f31222c2264617461223a7b7d7d');
INSERT INTO oncehook_fixture.body VALUES (9, '\x7b226576656e7454797065223a226d6573736167652e717565756564222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f70656e64696e67222c2273657175656e6365223a312c2264617461223a7b226d6573736167654964223a226d73675f70656e64696e67222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a22515545554544222c226572726f72223a6e756c6c7d7d');
INSERT INTO oncehook_fixture.body VALUES (10, '\x7b226576656e7454797065223a226d6573736167652e64656c6976657279222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f676170222c2273657175656e6365223a332c2264617461223a7b226d6573736167654964223a226d73675f676170222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a2264656c697665726564222c226572726f72223a6e756c6c2c2270726f76696465724d657373616765526566223a2270726f765f31227d7d');


--
-- Data for Name: client; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.client OVERRIDING SYSTEM VALUE VALUES (1, '\x6170635f31');


--
-- Data for Name: conflict; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.conflict VALUES (3, '\x71a529662d6226799528c002a1b5bdf0dbb8dcd97a1760072ea6c61b99cd1301', 1795712234199, 1795712234200, '\x7b226576656e7454797065223a226d6573736167652e64656c6976657279222c22646972656374696f6e223a226f7574626f756e64222c226f636375727265644174223a313739353731323233343033302c22617069436c69656e744964223a226170635f31222c226d6573736167654964223a226d73675f68616e646c6564222c2273657175656e6365223a332c2264617461223a7b226d6573736167654964223a226d73675f68616e646c6564222c2265787465726e616c5265666572656e6365223a226f726465722d31222c2273656e6446726f6d223a222b3134313535353530313030222c22746f223a222b3134313535353530313031222c22737461747573223a22756e64656c697665726564222c226572726f72223a6e756c6c2c2270726f76696465724d657373616765526566223a2270726f765f31227d7d');


--
-- Data for Name: event; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.event VALUES (1, 1, 1, 1, 1, 1, 1, 1795712234234, 1, 1795712234227, false, false, 0, false, 5100000, 1795712234030, 1795712234030, 1795712234165, NULL, NULL, '\x6266ba4fc69cffe33edf516feb288d87f2efde60589be9517da19dcda690f851', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (5, 5, 1, 1, 1, 1, 1, 1795712234234, 1, 1795712234227, false, false, 0, false, 5100000, 1795712234030, 1795712234207, 1795712234210, NULL, NULL, '\x52b5e682ab1da400657adb4ce65fcb0f2a9d098797b7d3ae01c7921838299c6e', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (7, 7, 0, 5, 1, 2, 2, 1795712234234, 1, 1795712234227, false, false, 0, false, 0, 1795712234030, 1795712234214, 1795712234217, NULL, NULL, '\xa9909b16d643d15abf07c5ae47de8ef9eec2ff03f1a1900853dd45163d34feca', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (8, 8, 0, 6, 1, 2, 2, 1795712234234, 1, 1795712234227, false, false, 0, false, 0, 1760000000000, 1795712234218, 1795712234221, NULL, NULL, '\x3d2db88774bf6c3818015384135e91f6fa110abb73432962065206c33b3afb57', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (2, 1, 2, 2, 1, 1, 1, 1795712234240, 1, 1795712234234, false, false, 0, false, 5100000, 1795712234030, 1795712234181, 1795712234187, NULL, NULL, '\x2f02ce6d98d8cf0a100a5ee909e5dcab1a6ea29e85871410fe77417feb225314', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (6, 5, 2, 4, 2, NULL, 4, 1795712234240, 1, 1795712234234, false, false, 0, false, 5100000, 1795712234030, 1795712234210, 1795712234213, 'Error', 'The handler has a bug.', '\xf6eac1a99de38084740f7ac6cb3baab10f7eb339f368b7644ffd0966b1fe1ed2', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (9, 9, 1, 1, 0, NULL, NULL, NULL, 0, NULL, false, false, 0, false, 5100000, 1795712234030, 1795712234262, 1795712234264, NULL, NULL, '\x04f1ced8562161545198b8e8bcf7c1ed3c23951bc4843731fac957e59a91aeba', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (10, 10, 3, 3, 0, NULL, NULL, NULL, 0, NULL, false, false, 0, false, 5100000, 1795712234030, 1795712234264, 1795712234265, NULL, NULL, '\xde889645149a4f8e619e4cf62a2da847b32a9688310fa512c0a8f79bc638cc8c', NULL, true);
INSERT INTO oncehook_fixture.event VALUES (3, 1, 3, 3, 1, 1, 1, 1795712234246, 1, 1795712234240, false, false, 2, true, 5100000, 1795712234030, 1795712234192, 1795712234195, NULL, NULL, '\x2e970325729137f121faee243788cf7c92339e490414a9cf469094e80e95bb0f', NULL, true);


--
-- Data for Name: gap; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--



--
-- Data for Name: instance; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--



--
-- Data for Name: kind; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.kind OVERRIDING SYSTEM VALUE VALUES (1, '\x6d6573736167652e717565756564');
INSERT INTO oncehook_fixture.kind OVERRIDING SYSTEM VALUE VALUES (2, '\x6d6573736167652e73656e74');
INSERT INTO oncehook_fixture.kind OVERRIDING SYSTEM VALUE VALUES (3, '\x6d6573736167652e64656c6976657279');
INSERT INTO oncehook_fixture.kind OVERRIDING SYSTEM VALUE VALUES (4, '\x6d6573736167652e6661696c6564');
INSERT INTO oncehook_fixture.kind OVERRIDING SYSTEM VALUE VALUES (5, '\x6d6573736167652e696e626f756e64');
INSERT INTO oncehook_fixture.kind OVERRIDING SYSTEM VALUE VALUES (6, '\x6d6573736167652e72656164');


--
-- Data for Name: lane; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.lane VALUES (7, 1, 1, '\x6d73675f756e68616e646c6564', 0, NULL, 0, NULL, 1, NULL, NULL, '\x2b3134313535353530313031', NULL, NULL, NULL, NULL);
INSERT INTO oncehook_fixture.lane VALUES (8, 1, 2, '\x33643264623838373734626636633338313830313533383431333565393166366661313130616262373334333239363230363532303663333362336166623537', 0, NULL, 0, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO oncehook_fixture.lane VALUES (5, 1, 0, '\x6d73675f64656164', 0, NULL, 2, NULL, 2, NULL, NULL, '\x2b3134313535353530313031', '\x6f726465722d31', NULL, NULL, NULL);
INSERT INTO oncehook_fixture.lane VALUES (1, 1, 0, '\x6d73675f68616e646c6564', 0, NULL, 3, NULL, 3, NULL, NULL, '\x2b3134313535353530313031', '\x6f726465722d31', NULL, NULL, NULL);
INSERT INTO oncehook_fixture.lane VALUES (9, 1, 0, '\x6d73675f70656e64696e67', 3, 1795712234264, NULL, NULL, 0, NULL, NULL, '\x2b3134313535353530313031', '\x6f726465722d31', NULL, NULL, NULL);
INSERT INTO oncehook_fixture.lane VALUES (10, 1, 0, '\x6d73675f676170', 4, 1795717334030, NULL, 1795712234265, 0, NULL, NULL, '\x2b3134313535353530313031', '\x6f726465722d31', NULL, NULL, NULL);


--
-- Data for Name: meta; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.meta VALUES ('names_pruned', '0');
INSERT INTO oncehook_fixture.meta VALUES ('schema', '6');
INSERT INTO oncehook_fixture.meta VALUES ('min_reader', '1');
INSERT INTO oncehook_fixture.meta VALUES ('name', 'default');
INSERT INTO oncehook_fixture.meta VALUES ('first_sequence', '1');
INSERT INTO oncehook_fixture.meta VALUES ('tolerance_ms', '5700000');


--
-- Data for Name: quarantine; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.quarantine OVERRIDING SYSTEM VALUE VALUES (1, '\x92072df399cb74703f8e86f450d552bc0bb01eeeb98a90985a1b7772c8fd0016', 'invalid_json', 'current', 'any', 0, NULL, 1795712234222, 1795712234223, 9, NULL, '\x7b6e6f74206a736f6e', '7192c3e551ed79f8');


--
-- Data for Name: secret; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--



--
-- Data for Name: tally; Type: TABLE DATA; Schema: oncehook_fixture; Owner: -
--

INSERT INTO oncehook_fixture.tally VALUES (0, 0, 2, 1, 1, 9, 0, 9, 2, 1, 0, 4, 2, 0, 1, 0, 0, 1, 1795712234264, true);


--
-- Name: attempt_id_seq; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.attempt_id_seq', 1, true);


--
-- Name: audit_id_seq; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.audit_id_seq', 1, false);


--
-- Name: client_id_seq; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.client_id_seq', 1, true);


--
-- Name: event_id; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.event_id', 10, true);


--
-- Name: instance_id_seq; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.instance_id_seq', 1, true);


--
-- Name: kind_id_seq; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.kind_id_seq', 6, true);


--
-- Name: lane_id; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.lane_id', 10, true);


--
-- Name: quarantine_id_seq; Type: SEQUENCE SET; Schema: oncehook_fixture; Owner: -
--

SELECT pg_catalog.setval('oncehook_fixture.quarantine_id_seq', 1, true);


--
-- Name: attempt attempt_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (id);


--
-- Name: audit audit_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);


--
-- Name: body body_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.body
    ADD CONSTRAINT body_pkey PRIMARY KEY (event);


--
-- Name: client client_name_key; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.client
    ADD CONSTRAINT client_name_key UNIQUE (name);


--
-- Name: client client_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.client
    ADD CONSTRAINT client_pkey PRIMARY KEY (id);


--
-- Name: conflict conflict_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.conflict
    ADD CONSTRAINT conflict_pkey PRIMARY KEY (event);


--
-- Name: event event_lane_seq_kind_key; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.event
    ADD CONSTRAINT event_lane_seq_kind_key UNIQUE (lane, seq, kind);


--
-- Name: event event_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);


--
-- Name: gap gap_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.gap
    ADD CONSTRAINT gap_pkey PRIMARY KEY (lane, hi);


--
-- Name: instance instance_name_key; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.instance
    ADD CONSTRAINT instance_name_key UNIQUE (name);


--
-- Name: instance instance_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (id);


--
-- Name: kind kind_name_key; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.kind
    ADD CONSTRAINT kind_name_key UNIQUE (name);


--
-- Name: kind kind_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.kind
    ADD CONSTRAINT kind_pkey PRIMARY KEY (id);


--
-- Name: lane lane_client_tag_message_key; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.lane
    ADD CONSTRAINT lane_client_tag_message_key UNIQUE (client, tag, message);


--
-- Name: lane lane_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (id);


--
-- Name: meta meta_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (key);


--
-- Name: quarantine quarantine_digest_key; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.quarantine
    ADD CONSTRAINT quarantine_digest_key UNIQUE (digest);


--
-- Name: quarantine quarantine_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.quarantine
    ADD CONSTRAINT quarantine_pkey PRIMARY KEY (id);


--
-- Name: secret secret_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.secret
    ADD CONSTRAINT secret_pkey PRIMARY KEY (kind);


--
-- Name: tally tally_pkey; Type: CONSTRAINT; Schema: oncehook_fixture; Owner: -
--

ALTER TABLE ONLY oncehook_fixture.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (instance, slot);


--
-- Name: attempt_event; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX attempt_event ON oncehook_fixture.attempt USING btree (event);


--
-- Name: event_conflict; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX event_conflict ON oncehook_fixture.event USING btree (id) WHERE conflict;


--
-- Name: event_error; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX event_error ON oncehook_fixture.event USING btree (error_code, id) WHERE (error_code IS NOT NULL);


--
-- Name: event_keep; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX event_keep ON oncehook_fixture.event USING btree (keep, finished) WHERE (keep IS NOT NULL);


--
-- Name: event_kind; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX event_kind ON oncehook_fixture.event USING btree (kind) WHERE (kind > 0);


--
-- Name: event_late; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX event_late ON oncehook_fixture.event USING btree (id) WHERE late;


--
-- Name: event_open; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX event_open ON oncehook_fixture.event USING btree (state, id) WHERE (state <> 1);


--
-- Name: event_unhandled; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX event_unhandled ON oncehook_fixture.event USING btree (id) WHERE (outcome = 2);


--
-- Name: lane_due; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX lane_due ON oncehook_fixture.lane USING btree (ready_at, id) WHERE (status >= 3);


--
-- Name: lane_lease; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX lane_lease ON oncehook_fixture.lane USING btree (ready_at, id) WHERE (status = 2);


--
-- Name: lane_parked; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX lane_parked ON oncehook_fixture.lane USING btree (status, id) WHERE (status = ANY (ARRAY[1, 4, 5]));


--
-- Name: quarantine_accepted; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX quarantine_accepted ON oncehook_fixture.quarantine USING btree (accepted);


--
-- Name: quarantine_held; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX quarantine_held ON oncehook_fixture.quarantine USING btree (slot, bytes) WHERE (state = 0);


--
-- Name: quarantine_signer; Type: INDEX; Schema: oncehook_fixture; Owner: -
--

CREATE INDEX quarantine_signer ON oncehook_fixture.quarantine USING btree (signer, slot, scope, bytes) WHERE (state = 0);


--
-- PostgreSQL database dump complete
--



